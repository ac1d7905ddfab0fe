// One truth about both ways, from this page to the computer and from the computer to its office: how it is, since when,
// and what is tried next. Every view says it in the same words.
import { html } from "./html.js";
import { duration, moment, sentences, t } from "./i18n.js";
import { useTick } from "./parts.js";
import { path } from "./router.js";
import { useStore } from "./store.js";

/** Whether an office is not there although the computer wants to be in it. */
export function isLost({ state, office, reason }) {
  return state === "disconnected" || (state === "connected" && Boolean(office || reason));
}

/** The ways as a value: `page` and `lost`, the office that is not there, and whether all that waits is known here. */
export function standing({ status, offices }) {
  const lost = offices.find(isLost) ?? null;
  return { page: status, lost, isKnown: status === "live" && lost === null };
}

export function useStanding() {
  const status = useStore((state) => state.status);
  const offices = useStore((state) => state.offices);
  return standing({ status, offices });
}

/** The way from this page to the computer, in a sentence without its next try. */
export function pageSentence({ status, statusSince }) {
  const when = moment(statusSince).short;
  return status === "gone" ? t("banner.gone", { when }) : t(`standing.page.${status}`, { when });
}

/** The way from the computer to a server and its office, and what is tried next. */
export function officeSentence(office) {
  const { url, reason, state, final } = office;
  const values = { url, office: office.office ?? "", when: moment(office.since).short, reason: reason ?? "" };
  if (!isLost(office)) return t(`standing.office.${state}`, values);
  const said = t(state === "disconnected" ? "standing.office.disconnected" : "standing.office.refused", values);
  return sentences([said, t(final ? "standing.next.final" : "standing.next.office")]);
}

/** What is not as it should be, in whole sentences; empty if all is well. */
export function troubles({ status, statusSince, offices }) {
  const gone = status === "gone";
  const lost = offices.filter(isLost).map(officeSentence);
  return [...(gone ? [pageSentence({ status, statusSince })] : []), ...lost.map((said) => (gone ? t("standing.heard", { said }) : said))];
}

function short({ page, lost }, statusSince, isAlone) {
  if (page === "gone") return t("standing.short.gone", { when: moment(statusSince).short });
  if (page !== "live") return t(`status.${page}`);
  if (lost) return t(lost.final ? "standing.short.final" : "standing.short.office", { when: moment(lost.since).short });
  return t(isAlone ? "status.live.alone" : "status.live");
}

/** When the page asks the computer again. */
function NextTry() {
  const retryAt = useStore((state) => state.retryAt);
  useTick(250);
  const left = retryAt === null ? 0 : Math.max(0, retryAt - Date.now() / 1000);
  return html`<span class="next" aria-hidden="true">${left ? t("standing.next.in", { time: duration(Math.ceil(left)) }) : t("standing.next.now")}</span>`;
}

/** The header's line about both ways; the view of the office has the whole. */
export function Standing() {
  const ways = useStanding();
  const state = useStore((all) => all);
  const isAlone = !state.offices.some((office) => office.office);
  const title = sentences([pageSentence(state), ...state.offices.map(officeSentence)]);
  return html`<a class=${`status ${ways.page}`} href=${path("office")} title=${title} data-trouble=${ways.isKnown ? null : ""}>
    <span class="dot" aria-hidden="true"></span><span role="status">${short(ways, state.statusSince, isAlone)}</span>
    ${ways.page === "gone" ? html`<${NextTry} />` : null}
  </a>`;
}

/** Both ways in whole sentences. */
export function Ways() {
  const state = useStore((all) => all);
  const gone = state.status === "gone";
  const offices = state.offices.map(officeSentence);
  return html`<ul class="ways">
    <li>${pageSentence(state)} ${gone ? html`<${NextTry} />` : null}</li>
    ${(offices.length ? offices : [t("standing.office.none")]).map((said, at) => html`<li key=${at}>${gone ? t("standing.heard", { said }) : said}</li>`)}
  </ul>`;
}
