// The first steps on a new computer: a server, which gives it tools, and an office, where an agent can use them.
import { useHome } from "./home.js";
import { html } from "./html.js";
import { t } from "./i18n.js";
import { Icon } from "./icons.js";
import { path } from "./router.js";
import { useStore } from "./store.js";

// The view of decisions must not move, and the other views have hints of their own.
const VIEWS = ["calls", "tools", "desktop", "finder"];

export function FirstSteps({ view }) {
  const known = useStore((state) => state.number >= 0);
  const hasServer = useStore((state) => state.servers.length > 0);
  const hasOffice = useStore((state) => state.offices.length > 0);
  if (!known || (hasServer && hasOffice) || !VIEWS.includes(view)) return null;
  return html`<${Steps} hasServer=${hasServer} hasOffice=${hasOffice} />`;
}

function Steps({ hasServer, hasOffice }) {
  const home = useHome();
  const steps = [
    ...(hasServer ? [] : [["servers", "first.server", "first.server.why"]]),
    ...(hasOffice || !home?.office_url ? [] : [["office", "first.office", "first.office.why"]]),
  ];
  if (!steps.length) return null;
  return html`<section class="card first-steps" aria-labelledby="first-steps">
    <h2 id="first-steps">${t("first.title")}</h2>
    <ul>
      ${steps.map(
        ([view, name, why]) => html`<li key=${view}>
          <a href=${path(view)}><${Icon} name=${view} />${t(name)}</a><span class="muted">${t(why)}</span>
        </li>`,
      )}
    </ul>
  </section>`;
}
