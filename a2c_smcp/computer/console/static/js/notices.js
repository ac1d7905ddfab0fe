// Notices: what the person should know but need not decide. They are behind a button in the header, so that nothing moves.
import { post } from "./api.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";
import { useAction } from "./parts.js";
import { deafenAll } from "./steady.js";
import { forgetNotice, useStore } from "./store.js";
import { notice as worded } from "./wording.js";

export function Notices() {
  const notices = useStore((state) => state.notices);
  const last = notices.at(-1);
  const said = t("notices.count", { count: notices.length });
  // The click that closes it must not press a button below it.
  return html`<button type="button" class="quiet told" popovertarget="notices" aria-label=${said} title=${said} disabled=${!notices.length}>
      <${Icon} name="notice" /><span class="count" data-count=${notices.length} aria-hidden="true">${notices.length}</span>
    </button>
    <p class="visually-hidden" role="status">${last ? worded(last) : ""}</p>
    <div id="notices" popover class="overlay" role="group" aria-label=${t("notices.title")} onBeforeToggle=${deafenAll}>
      ${notices.length ? notices.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} />`) : html`<p class="muted">${t("notices.none")}</p>`}
    </div>`;
}

function Notice({ notice }) {
  return html`<div class="notice">
    <p class="words">${worded(notice)}${notice.count > 1 ? html` <b>${t("notices.times", { count: notice.count })}</b>` : null}</p>
    ${notice.restart ? html`<${Restart} notice=${notice} />` : null}
    <button type="button" class="quiet small" aria-label=${t("notices.forget")} onClick=${() => forgetNotice(notice.id)}><${Icon} name="close" /></button>
  </div>`;
}

function Restart({ notice }) {
  const [restart, busy, error] = useAction(async () => {
    await post("server", { server: notice.server, action: "restart" });
    forgetNotice(notice.id);
  });
  return html`<button type="button" class="small" disabled=${busy} title=${error}
    aria-label=${t("servers.action", { action: t("servers.restart"), server: notice.server })} onClick=${() => restart()}>${t("servers.restart")}</button>`;
}
