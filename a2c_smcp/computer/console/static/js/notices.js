// What the person should know but need not decide: behind a button in the header, so that nothing below it ever moves.
import { post } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";
import { useAction } from "./parts.js";
import { deafenAll } from "./steady.js";
import { forgetNotice, useStore } from "./store.js";

export function Notices() {
  const notices = useStore((state) => state.notices);
  const [open, setOpen] = useState(false);
  const panel = useRef(null);
  const close = () => {
    setOpen(false);
    deafenAll(); // what lay under the panel is in reach again
  };
  useEffect(() => {
    if (open && !notices.length) close();
  }, [notices.length]);
  useEffect(() => {
    if (open) panel.current?.focus();
  }, [open]);
  const key = (event) => event.key === "Escape" && close();
  return html`<div class="notices" onKeyDown=${key}>
    <button type="button" class="quiet bell" aria-expanded=${open} aria-label=${t("notices.count", { count: notices.length })} title=${t("notices.title")} disabled=${!notices.length} onClick=${() => (open ? close() : setOpen(true))}>
      <${Icon} name="notice" /><span class="count" data-count=${notices.length} aria-hidden="true">${notices.length}</span>
    </button>
    <p class="visually-hidden" role="status">${notices.at(-1)?.text ?? ""}</p>
    ${open
      ? html`<div class="panel card" ref=${panel} tabindex="-1" role="region" aria-label=${t("notices.title")}>
          ${notices.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} />`)}
          <button type="button" class="small" onClick=${close}>${t("parts.close")}</button>
        </div>`
      : null}
  </div>`;
}

function Notice({ notice }) {
  return html`<div class="notice">
    <p class="words">${notice.text}${notice.count > 1 ? html` <b>${t("notices.times", { count: notice.count })}</b>` : null}</p>
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
