// The one rule for all calls of a tool: none, allow, ask or never. Pressing one replaces the other.
import { post } from "./api.js";
import { html, useState } from "./html.js";
import { t } from "./i18n.js";
import { Problem, useAction } from "./parts.js";
import { path } from "./router.js";
import { useRules } from "./rules.js";
import { SteadyButton } from "./steady.js";

const EFFECTS = ["", "allow", "ask", "deny"];

export function ToolRule({ tool }) {
  const { value, load } = useRules();
  const [hour, setHour] = useState(false);
  const [choose, busy, error] = useAction(async (effect) => {
    await post("tool-rule", { tool: tool.name, effect, hour });
    load();
  });
  if (!value) return null;
  const now = value.rules.find((rule) => rule.source !== "config" && rule.of_tool?.[0] === tool.server && rule.of_tool[1] === tool.name);
  return html`<div class="tool-rule" role="group" aria-label=${t("rules.tool")}>
    <p class="line"><span class="muted">${t("rules.tool")}</span>
      ${EFFECTS.map((effect) => {
        const pressed = effect === (now?.effect ?? "");
        const word = t(`rules.tool.${effect || "none"}`);
        return html`<${SteadyButton} key=${effect} class=${`small ${pressed ? "primary" : ""}`} data-effect=${effect} aria-pressed=${String(pressed)} ready=${!busy}
          aria-label=${t("rules.switch", { word, tool: tool.name })} onAnswer=${() => choose(effect)}>${word}<//>`;
      })}
      <label class="check"><input type="checkbox" checked=${hour} onChange=${(event) => setHour(event.currentTarget.checked)} />${t("rules.hour")}</label>
    </p>
    ${now?.expires ? html`<p class="muted hint">${t("rules.tool.hour")}</p>` : null}
    <p class="muted hint"><a href=${path("rules")}>${t("rules.tool.others")}</a></p>
    <${Problem} text=${error} />
  </div>`;
}
