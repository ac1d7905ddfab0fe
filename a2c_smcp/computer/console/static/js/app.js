// The frame: a header, the views, and the decisions beside them.
import { Bell } from "./bell.js";
import { Calls } from "./calls.js";
import { Decisions, usePendingCount } from "./decisions.js";
import { Desktop } from "./desktop.js";
import { RememberOffer } from "./devices.js";
import { Finder } from "./finder.js";
import { FirstSteps } from "./first-steps.js";
import { html, useEffect, useRef } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";
import { jump, JUMP_KEY, useJumpKey } from "./jump.js";
import { Notices } from "./notices.js";
import { Office } from "./office.js";
import { Over } from "./over.js";
import { path, useRoute, VIEWS } from "./router.js";
import { Rules } from "./rules.js";
import { Servers } from "./servers.js";
import { pageSentence, Standing, useStanding } from "./standing.js";
import { useStore } from "./store.js";
import { Tools } from "./tools.js";

const SHOWN = { decisions: Decisions, calls: Calls, servers: Servers, tools: Tools, rules: Rules, desktop: Desktop, finder: Finder, office: Office };

export function App() {
  const { view, rest } = useRoute();
  const status = useStore((state) => state.status);
  const count = usePendingCount();
  const name = useStore((state) => state.name);
  const main = useRef(null);
  useEffect(() => {
    document.title = `${count ? `(${count}) ` : ""}${t("app.title", { name })}`;
  }, [count, name]);
  useEffect(() => main.current?.scrollTo(0, 0), [view, rest[0]]);
  useJumpKey(count > 0);
  if (status === "over") return html`<${Over} />`;
  const View = SHOWN[view];
  return html`<div class="frame" data-view=${view}>
    <${Header} name=${name} count=${count}>
      ${count ? html`<a class="skip" href=${path("decisions")} onClick=${(event) => (event.preventDefault(), jump())}>${t("app.skip.decisions")}</a>` : null}
      <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>${t("app.skip")}</a>
    <//>
    <${Navigation} view=${view} count=${count} />
    <main ref=${main} id="main" tabindex="-1">
      <h1 class="visually-hidden">${t(`nav.${view}`)}</h1>
      <${FirstSteps} view=${view} />
      <${View} rest=${rest} />
      ${view === "office" ? null : html`<${RememberOffer} />`}
    </main>
    ${view === "decisions" ? null : html`<aside class="rail" aria-label=${t("decisions.title")}><${Decisions} /></aside>`}
    <${Banner} status=${status} />
  </div>`;
}

function Banner({ status }) {
  const since = useStore((state) => state.statusSince);
  const gone = status === "gone";
  return html`<div class="banner" role="alert" data-shown=${gone ? "" : null}>${gone ? pageSentence({ status, statusSince: since }) : ""}</div>`;
}

function Header({ name, count, children }) {
  const { isKnown } = useStanding();
  return html`<header class="top">
    ${children}
    <img src="/icon.svg" alt="" width="28" height="28" />
    <span class="self"><b class="computer">${name}</b><${Standing} /></span>
    <span class="grow"></span>
    <${Notices} />
    <${Bell} />
    <a class="waiting" href=${path("decisions")} data-count=${count} data-known=${isKnown ? "" : null} title=${t("decisions.jump", { key: JUMP_KEY })}>
      <${Icon} name="decisions" />${count ? t("decisions.count", { count }) : t(isKnown ? "decisions.none" : "decisions.none.known")}
    </a>
  </header>`;
}

function Navigation({ view, count }) {
  return html`<nav class="views" aria-label=${t("app.views")}>
    ${VIEWS.map(
      (each) => html`<a key=${each} href=${path(each)} aria-current=${each === view ? "page" : null}>
        <${Icon} name=${each} /><span>${t(`nav.${each}`)}</span>
        ${each === "decisions" && count ? html`<span class="count" aria-hidden="true">${count}</span>` : null}
      </a>`,
    )}
  </nav>`;
}
