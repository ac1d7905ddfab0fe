// The bell in the header: what is on and off of the alerts, and the switches for them.
import { notificationsHere, useAlerts, useChoice } from "./alerts.js";
import { html } from "./html.js";
import { t } from "./i18n.js";
import { Icon } from "./icons.js";
import { deafenAll } from "./steady.js";

export function Bell() {
  const [choice, choose] = useChoice();
  useAlerts(choice);
  const here = notificationsHere();
  const state = t("alerts.state", {
    notify: t(choice.notify ? "alerts.on" : "alerts.off"),
    sound: t(choice.sound ? "alerts.on" : "alerts.off"),
  });
  return html`<button type="button" class="quiet bell" popovertarget="alerts" aria-label=${state} title=${state} data-on=${choice.notify || choice.sound ? "" : null}>
      <${Icon} name=${choice.notify || choice.sound ? "bell" : "silent"} />
    </button>
    <div id="alerts" popover class="overlay alerts" role="group" onBeforeToggle=${deafenAll} aria-label=${t("alerts.heading")}>
      <p><b>${t("alerts.heading")}</b></p>
      <label><input type="checkbox" checked=${choice.notify} disabled=${here !== "ok"} onChange=${(event) => choose({ notify: event.currentTarget.checked })} /> ${t("alerts.notify")}</label>
      <label><input type="checkbox" checked=${choice.sound} onChange=${(event) => choose({ sound: event.currentTarget.checked })} /> ${t("alerts.sound")}</label>
      <p class="muted">${t(`alerts.here.${here}`)}</p>
    </div>`;
}
