// The browsers that are in, or may come in without a link: remembered, revoked, and let in with a QR code.
import { get, post } from "./api.js";
import { canKeep, keepKey, keptKey, newKey } from "./device-key.js";
import { html, useState } from "./html.js";
import { date, t } from "./i18n.js";
import { Block, Chip, Loading, Problem, useAction, useLoaded, useTick } from "./parts.js";
import { shownName } from "./who.js";

const DECLINED = "a2c-declined";
const OFTEN = 5_000;

/** Who is in, and whether this browser may be remembered: it can keep a key, and has none yet. */
async function load(signal) {
  const found = await get("devices", {}, signal);
  const offered = found.computer !== null && canKeep() && !(await keptKey(found.computer));
  return { ...found, offered };
}

async function remember() {
  const { pair, publicKey } = await newKey();
  const { computer, device } = await post("remember", { key: publicKey });
  await keepKey(computer, device, pair);
}

/** One line that offers to remember this browser, until it is answered. */
export function RememberOffer() {
  const [answered, setAnswered] = useState(false);
  const { value } = useLoaded(load, []);
  const [accept, busy, error] = useAction(async () => {
    await remember();
    setAnswered(true);
  });
  const decline = () => {
    localStorage.setItem(DECLINED, value.computer);
    setAnswered(true);
  };
  if (answered || !value?.offered || localStorage.getItem(DECLINED) === value.computer) return null;
  return html`<div class="offer" role="group" aria-label=${t("devices.remember")}>
    <span>${t("devices.offer")}</span>
    <button type="button" class="small" disabled=${busy} onClick=${() => accept()}>${t("devices.remember")}</button>
    <button type="button" class="small quiet" disabled=${busy} onClick=${decline}>${t("devices.decline")}</button>
    <${Problem} text=${error} />
  </div>`;
}

export function Devices() {
  const [round, setRound] = useState(0);
  useTick(OFTEN);
  const { value, error } = useLoaded(load, [round, Math.floor(Date.now() / OFTEN)]);
  const changed = () => setRound((before) => before + 1);
  if (!value) return error ? html`<${Problem} text=${error} />` : html`<${Loading} />`;
  return html`<section class="devices" aria-labelledby="devices">
    <h2 id="devices">${t("devices.title")}</h2>
    <ul class="rows">
      ${value.devices.map((device) => html`<${Row} key=${device.id} name=${device.name} here=${device.here} target=${{ device: device.id }} onChange=${changed}>
        <${Chip} tone="ok">${t("devices.remembered")}<//>
        <span class="muted">${t("devices.used", { since: date(device.granted * 1000), when: date(device.used * 1000), until: date(device.expires * 1000) })}</span>
      <//>`)}
      ${value.pages.map((page) => html`<${Row} key=${page.name} name=${page.name} here=${page.here} target=${{ page: page.name }} onChange=${changed}>
        <${Chip}>${t("devices.link")}<//>
      <//>`)}
    </ul>
    ${value.offered ? html`<${Remember} onChange=${changed} />` : null}
    <h3>${t("devices.another")}</h3>
    ${value.others_reach_it ? html`<${Another} />` : html`<p class="muted">${t("devices.another.needs")}</p>`}
  </section>`;
}

function Row({ here, target, onChange, children, ...given }) {
  const name = shownName(given.name);
  const [revoke, busy, error] = useAction(async () => {
    await post("revoke", target);
    onChange();
  });
  return html`<li class="row device">
    <div class="line">
      <b>${name}</b>
      ${here ? html`<${Chip} tone="warn">${t("who.here")}<//>` : null}
      ${children}
      <span class="grow"></span>
      <button type="button" class="small" disabled=${busy} aria-label=${t("devices.revoke.name", { name })} onClick=${() => revoke()}>${t("devices.revoke")}</button>
    </div>
    <${Problem} text=${error} />
  </li>`;
}

function Remember({ onChange }) {
  const [accept, busy, error] = useAction(async () => {
    await remember();
    onChange();
  });
  return html`<p class="line">
      <button type="button" disabled=${busy} onClick=${() => accept()}>${t("devices.remember")}</button>
      <span class="muted">${t("devices.remember.hint")}</span>
    </p>
    <${Problem} text=${error} />`;
}

/** A link for a phone, drawn so that its camera reads it. */
function Another() {
  const [made, setMade] = useState(null);
  const [make, busy, error] = useAction(async () => setMade(await post("link", {})));
  return html`<div class="another">
    <button type="button" disabled=${busy} onClick=${() => make()}>${t("devices.another.make")}</button>
    ${made
      ? html`<img class="qr" src=${made.image} alt=${t("devices.another.picture")} width="240" height="240" />
          <${Block} text=${made.link} label=${t("devices.another.address")} copy=${true} />
          <p class="muted">${t("devices.another.works", { minutes: Math.round(made.seconds / 60) })}</p>`
      : null}
    <${Problem} text=${error} />
  </div>`;
}
