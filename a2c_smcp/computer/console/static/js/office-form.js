// Joining an office. The key is sent once, and kept nowhere on this page.
import { post } from "./api.js";
import { html, useState } from "./html.js";
import { t } from "./i18n.js";
import { useAction } from "./parts.js";

export function JoinForm({ url }) {
  const [wish, setWish] = useState({ url, office: "", key: "" });
  const [join, busy, , error] = useAction(async () => {
    await post("join-office", wish);
    setWish((now) => ({ ...now, key: "" }));
  });
  const send = (event) => {
    event.preventDefault();
    if (!busy) join();
  };
  const typed = (name) => (event) => setWish({ ...wish, [name]: event.currentTarget.value });
  return html`<form class="card join" aria-label=${t("office.join")} autocomplete="off" onSubmit=${send}>
    <${Field} name="url" label=${t("office.url")} type="url" required=${true} value=${wish.url} onInput=${typed("url")} />
    <${Field} name="office" label=${t("office.office")} required=${true} value=${wish.office} onInput=${typed("office")} />
    <${Field} name="key" label=${t("office.key")} type="password" hint=${t("office.key.hint")} value=${wish.key} onInput=${typed("key")} />
    ${error ? html`<p class="problem" role="alert">${refused(error)}</p>` : null}
    <div class="actions"><button type="submit" class="primary" disabled=${busy}>${t(busy ? "office.joining" : "office.join.do")}</button></div>
  </form>`;
}

function Field({ name, label, hint, type = "text", ...props }) {
  const id = `join-${name}`;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <input id=${id} type=${type} spellcheck="false" autocapitalize="off" autocomplete=${type === "password" ? "new-password" : "off"}
      data-1p-ignore data-lpignore="true" aria-describedby=${hint ? `${id}-hint` : null} ...${props} />
    ${hint ? html`<p class="muted hint" id=${`${id}-hint`}>${hint}</p>` : null}
  </div>`;
}

function refused({ code, message }) {
  return [0, 401, 403, 4105].includes(code) ? t(`office.refused.${code}`, { reason: message }) : message;
}
