// Adds servers from a paste, and edits the entry of a server. It is checked when the typing pauses, then started and written.
import { get, post } from "./api.js";
import { useChecked } from "./checked.js";
import { html, useState } from "./html.js";
import { t } from "./i18n.js";
import { Block, Fold, Loading, Problem, useAction, useLoaded } from "./parts.js";

const EXAMPLE = `{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"]
    }
  }
}`;

// A paste is kept while the person looks at another view.
let draft = "";

export function AddServer({ home, onDone, onClose }) {
  const [text, setText] = useState(draft);
  const [once, setOnce] = useState(!home.file);
  const typed = (next) => {
    draft = next;
    setText(next);
  };
  const done = () => {
    typed("");
    onDone?.();
  };
  const note = home.file
    ? html`${t(once ? "servers.add.nowrite" : "servers.add.file", { file: home.file })}
        <label class="once"><input type="checkbox" checked=${once} onChange=${(event) => setOnce(event.currentTarget.checked)} /> ${t("servers.add.once")}</label>`
    : t("servers.add.nofile");
  return html`<section class="card editor" aria-labelledby="add-server">
    <h2 id="add-server">${t("servers.add")}</h2>
    <p class="muted" id="add-server-hint">${t("servers.add.hint")}</p>
    <${Editor} id="paste" label=${t("servers.paste")} hint="add-server-hint" text=${text} onText=${typed} more=${{ until_stop: once }}
      action=${t(once ? "servers.add.run" : "servers.add.do")} onDone=${done} onClose=${onClose} note=${note} placeholder=${EXAMPLE} />
    <${Fold} title=${t("servers.example")}><${Block} text=${EXAMPLE} label=${t("servers.example")} copy=${true} /><//>
  </section>`;
}

export function EditServer({ server, onDone }) {
  const { value, error, loading } = useLoaded((signal) => get("entry", { server }, signal), [server]);
  const [text, setText] = useState(null);
  if (loading) return html`<${Loading} />`;
  if (!value) return html`<${Problem} text=${error} />`;
  const more = { server, digest: value.digest };
  return html`<div class="editor">
    <${Editor} id=${`edit-${server}`} label=${t("servers.entry", { server })} text=${text ?? value.text} onText=${setText} more=${more}
      action=${t("servers.save")} name=${t("servers.save.name", { server })} onDone=${onDone} onClose=${onDone}
      note=${value.file ? t("servers.edit.file", { file: value.file }) : t("servers.edit.nofile")} />
  </div>`;
}

function Editor({ id, label, hint, text, onText, more, action, name, note, placeholder, onDone, onClose }) {
  const checked = useChecked("check-servers", text.trim() ? { text, ...more } : null);
  const [blocked, setBlocked] = useState(false);
  const [save, busy, error] = useAction(async () => {
    try {
      await post("save-servers", { text, ...more });
    } catch (refused) {
      // Another change is under way: in another page, or from before this page was loaded again.
      setBlocked(refused.code === 429);
      throw refused;
    }
    onDone();
  });
  const cancel = async () => {
    await post("cancel-save", {}).catch(() => {});
    setBlocked(false);
  };
  const submit = (event) => {
    event.preventDefault();
    if (checked && !checked.problems.length && !busy) save();
  };
  const wrong = checked?.problems.length > 0;
  return html`<form onSubmit=${submit} autocomplete="off">
    <div class="field">
      <label for=${id}>${label}</label>
      <textarea id=${id} class="mono entry" rows="8" spellcheck="false" autocapitalize="off" value=${text} placeholder=${placeholder} readonly=${busy}
        aria-invalid=${wrong} aria-describedby=${[hint, `${id}-found`].filter(Boolean).join(" ")} onInput=${(event) => onText(event.currentTarget.value)}></textarea>
      <div id=${`${id}-found`} role="status"><${Checked} checked=${checked} /></div>
    </div>
    <div class="muted">${note}</div>
    <${Problem} text=${error} />
    <div class="actions">
      <button type="submit" class="primary" aria-label=${name} disabled=${busy || !checked || wrong}>${busy ? t("servers.starting") : action}</button>
      ${busy || blocked
        ? html`<button type="button" onClick=${cancel}>${t("servers.cancel")}</button>`
        : onClose && html`<button type="button" class="quiet" onClick=${onClose}>${t("servers.close")}</button>`}
    </div>
  </form>`;
}

function Checked({ checked }) {
  if (!checked) return null;
  const { servers = [], inputs = [], problems, warnings = [] } = checked;
  return html`<ul class="checked">
    ${problems.map((problem) => html`<li key=${problem} class="problem">${problem}</li>`)}
    ${problems.length
      ? null
      : servers.map(
          ({ name, replaces, runs }) => html`<li key=${name}>
            ${t(replaces ? "servers.replaces" : "servers.adds", { server: name })} <bdi class="mono runs">${runs}</bdi>
          </li>`,
        )}
    ${inputs.length ? html`<li>${t("servers.brings", { inputs: inputs.join(", ") })}</li>` : null}
    ${warnings.map((warning) => html`<li key=${warning} class="reason">${warning}</li>`)}
  </ul>`;
}
