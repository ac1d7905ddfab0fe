// Where this computer is: its connection, its office, its name, and who can decide.
import { post } from "./api.js";
import { AskOnce } from "./ask-once.js";
import { Devices } from "./devices.js";
import { useHome } from "./home.js";
import { html } from "./html.js";
import { listed, t } from "./i18n.js";
import { JoinForm } from "./office-form.js";
import { Chip, Empty, Fold, Problem, useAction } from "./parts.js";
import { Ways } from "./standing.js";
import { useStore } from "./store.js";
import { who } from "./who.js";

const TONES = { joined: "ok", connected: "warn", connecting: "warn", disconnected: "bad", closed: "bad" };

export function Office() {
  const offices = useStore((state) => state.offices);
  const { name, version, protocol, answerers } = useStore((state) => state);
  const home = useHome();
  const canJoin = Boolean(home?.office_url);
  const joined = offices.some((office) => office.office);
  return html`<section aria-labelledby="office-computer">
      <h2 id="office-computer">${t("office.computer")}</h2>
      <${Ways} />
      <dl class="facts card">
        <dt>${t("office.name")}</dt><dd><b>${name}</b></dd>
        <dt>${t("office.version")}</dt><dd>${version}</dd>
        <dt>${t("office.protocol")}</dt><dd>${protocol}</dd>
        <dt>${t("office.answerers")}</dt><dd>${answerers.length ? listed(answerers.map(who)) : t("office.answerers.none")}</dd>
      </dl>
    </section>
    <section aria-labelledby="office-offices">
      <h2 id="office-offices">${t("office.office")}</h2>
      ${offices.length === 0
        ? html`<${Empty} icon="office" title=${t("office.none")} hint=${t(!home || canJoin ? "office.none.hint" : "office.none.program")} />`
        : offices.map((office) => html`<${Connection} key=${office.id} office=${office} canLeave=${canJoin} />`)}
    </section>
    ${canJoin
      ? html`<section aria-label=${t("office.join")}>
          <${Fold} open=${!joined} title=${t(joined ? "office.another" : "office.join")}><${JoinForm} url=${home.office_url} /><//>
        </section>`
      : null}
    <${Devices} />`;
}

function stateOf({ state, final }) {
  return state === "disconnected" && final ? t("office.state.lost") : t(`office.state.${state}`);
}

function Connection({ office, canLeave }) {
  const [leave, busy, error] = useAction(() => post("leave-office", {}));
  const place = office.office ?? office.url;
  return html`<dl class="facts card">
    <dt>${t("office.server")}</dt><dd class="mono">${office.url}</dd>
    <dt>${t("office.office")}</dt>
    <dd>
      <span class=${`dot ${TONES[office.state]}`} aria-hidden="true"></span>
      ${office.office ? html`<b>${office.office}</b> ` : null}<${Chip} tone=${TONES[office.state]}>${stateOf(office)}<//>
    </dd>
    ${office.name ? html`<dt>${t("office.as")}</dt><dd>${office.name}</dd>` : null}
    ${office.reason ? html`<dt></dt><dd class="reason">${office.reason}</dd>` : null}
    ${canLeave
      ? html`<dt></dt><dd>
          <${AskOnce} label=${t("office.leave")} name=${t("office.leave.name", { place })} busy=${busy} act=${leave}
            question=${t("office.leave.ask", { place })} keep=${t("office.leave.keep", { place })} />
          <${Problem} text=${error} />
        </dd>`
      : null}
  </dl>`;
}
