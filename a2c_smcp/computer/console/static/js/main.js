// The start: the way in, then the page and its stream.
import { App } from "./app.js";
import { html, render } from "./html.js";
import { language } from "./i18n.js";
import { follow } from "./live.js";
import { Over } from "./over.js";
import { enter, sessionKey } from "./session.js";

document.documentElement.lang = language;
const root = document.getElementById("app");

async function start() {
  const reason = await enter().catch((error) => error.message);
  if (!sessionKey()) {
    render(html`<${Over} reason=${reason} />`, root);
    return;
  }
  render(html`<${App} />`, root);
  follow();
}

// A fresh link opened in a tab that shows this page already changes only the fragment.
addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());
start();
