// Which rule decides a call that somebody thinks of. The call is not made.
import { get, post } from "./api.js";
import { html, useState } from "./html.js";
import { t } from "./i18n.js";
import { Chip, Problem, useAction, useLoaded } from "./parts.js";
import { effectOf } from "./rule-editor.js";
import { phrase } from "./rule-words.js";
import { useStore } from "./store.js";

export function RuleTest() {
  const stamp = useStore((state) => state.stamps.tools);
  const { value } = useLoaded((signal) => get("tools", {}, signal), [stamp], 300);
  const [asked, setAsked] = useState({ tool: "", text: "{}", agent: "", bound: false });
  const [found, setFound] = useState(null);
  const set = (name, of) => (event) => (setAsked({ ...asked, [name]: of(event.currentTarget) }), setFound(null));
  const typed = (target) => target.value;
  const [test, busy, error] = useAction(async () => {
    const { tool, text, agent, bound } = asked;
    setFound(await post("test-rules", { tool: tool || value?.tools[0]?.name, arguments: parsed(text), agent, bound }));
  });
  const submit = (event) => {
    event.preventDefault();
    test();
  };
  if (!value?.tools.length) return null;
  return html`<section aria-labelledby="rules-test">
    <h2 id="rules-test">${t("rules.test")}</h2>
    <form class="card rule-test" onSubmit=${submit} autocomplete="off">
      <div class="field"><label for="test-tool">${t("rules.test.tool")}</label>
        <select id="test-tool" value=${asked.tool || value.tools[0].name} onChange=${set("tool", typed)}>${value.tools.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}</select></div>
      <div class="field"><label for="test-arguments">${t("rules.test.arguments")}</label>
        <textarea id="test-arguments" class="mono" rows="3" spellcheck="false" value=${asked.text} onInput=${set("text", typed)}></textarea></div>
      <div class="field"><label for="test-agent">${t("rules.test.agent")}</label>
        <input id="test-agent" type="text" value=${asked.agent} onInput=${set("agent", typed)} /></div>
      <label class="check"><input type="checkbox" checked=${asked.bound} onChange=${set("bound", (target) => target.checked)} />${t("rules.test.bound")}</label>
      <div class="actions"><button type="submit" disabled=${busy}>${t("rules.test.do")}</button></div>
      <div role="status" class="tested">${found ? html`<${Verdict} verdict=${found.verdict} />` : null}</div>
      <${Problem} text=${error} />
    </form>
  </section>`;
}

function Verdict({ verdict }) {
  if (!verdict) return html`<p>${t("rules.test.none")}</p>`;
  return html`<p><${Chip}>${effectOf(verdict)}<//> <b class="mono">${verdict.id}</b> ${verdict.phrases.map(phrase).join(t("rule.and"))}</p>
    ${verdict.asleep ? html`<p class="danger-sign">${t("rules.asleep")}</p>` : null}`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(t("tools.badjson"));
  }
}
