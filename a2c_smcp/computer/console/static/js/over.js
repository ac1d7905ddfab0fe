// What a person sees who is not let in: the reason, and how to get a link.
import { advice } from "./door.js";
import { typedTexts } from "./drafts.js";
import { html, useEffect, useState } from "./html.js";
import { t } from "./i18n.js";
import { Block, Copy } from "./parts.js";
import { endReason } from "./session.js";

export function Over({ reason = endReason() }) {
  const [door, setDoor] = useState(null);
  useEffect(() => {
    advice().then(setDoor);
  }, []);
  useEffect(() => {
    document.title = t("banner.over.title");
  }, []);
  return html`<main class="over" role="alert">
    <img src="/icon.svg" alt="" width="56" height="56" />
    <h1>${t("banner.over.title")}</h1>
    ${reason ? html`<p class="problem">${t("banner.refused", { reason })}</p>` : null}
    <p class="muted">${t("banner.over")} ${door?.remembers ? t("banner.remembers") : ""}</p>
    <p>${door ? t(`banner.advice.${door.advice}`, { pid: door.pid ?? "PID" }) : ""}</p>
    ${typedTexts().map((typed, at) => html`<${Unsent} key=${at} ...${typed} />`)}
    <button type="button" onClick=${() => location.reload()}>${t("banner.again")}</button>
  </main>`;
}

/** What was typed. A password can be copied, but is not shown. */
function Unsent({ text, secret }) {
  const said = t("decisions.unsent");
  return html`<div class="typed"><p class="muted">${said}</p>
    ${secret ? html`<${Copy} text=${text} class="small" />` : html`<${Block} text=${text} label=${said} copy=${true} />`}
  </div>`;
}
