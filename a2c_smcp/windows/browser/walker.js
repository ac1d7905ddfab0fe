// Runs in a page. It writes what a person sees as lines of text, with references to what can be clicked or filled in,
// and stops at its budget: of characters, of nodes, and of time. It keeps its state in one object of the document.
(options) => {
  const KEY = Symbol.for("a2c.windows");
  const state = document[KEY] ?? install();

  function install() {
    const made = { version: 1, next: 1, refs: new Map(), ids: new WeakMap(), watched: new WeakSet() };
    const changed = () => { made.version += 1; };
    const observer = new MutationObserver(changed);
    // Changes inside a shadow tree are told only to those who watch that tree.
    made.watch = (root) => {
      if (made.watched.has(root)) return;
      made.watched.add(root);
      observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
    };
    made.watch(document);
    for (const name of ["input", "change", "focusin", "toggle"]) {
      document.addEventListener(name, changed, { capture: true, passive: true });
    }
    Object.defineProperty(document, KEY, { value: made });
    return made;
  }

  if (options.find !== undefined) {
    const element = state.refs.get(options.find)?.deref();
    return element?.isConnected ? element : null;
  }

  const begun = performance.now();
  let lines = [];
  // References are counted by the caller, over all documents: an old one never means something new.
  state.next = Math.max(state.next, options.first ?? 1);
  const markdown = options.markdown === true;
  let room = options.budget;
  let nodes = 0;
  let full = false;
  let sawFocus = false;
  let line = "";

  const focused = (() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element === document.body ? null : element;
  })();
  const onTheWay = new Set();
  for (let each = focused; each; each = each.parentNode ?? each.host) onTheWay.add(each);

  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK", "IFRAME", "FRAME", "OBJECT", "CANVAS", "SVG", "svg"]);
  const BLOCKS = /^(ADDRESS|ARTICLE|ASIDE|BLOCKQUOTE|BODY|CAPTION|DD|DETAILS|DIALOG|DIV|DL|DT|FIELDSET|FIGURE|FOOTER|FORM|H[1-6]|HEADER|HR|LI|MAIN|NAV|OL|P|PRE|SECTION|SUMMARY|TABLE|TBODY|TD|TFOOT|TH|THEAD|TR|UL)$/;
  const ROLES = "button|tab|menuitem|menuitemcheckbox|menuitemradio|checkbox|switch|option|link|radio".split("|");
  const ACTIONABLE = ["a[href]", "button", "input", "select", "textarea", "summary", "[onclick]", "[contenteditable]", ...ROLES.map((role) => `[role=${role}]`)].join(",");

  const short = (text, most) => {
    const one = String(text ?? "").replace(/\s+/g, " ").trim();
    return one.length > most ? one.slice(0, most - 1) + "…" : one;
  };
  const quote = (text) => JSON.stringify(short(text, 200));

  function flush(ref = "", isPlain = false) {
    // A text of the page must not look like a reference.
    let text = (isPlain ? line.trimEnd() : line.replace(/\s+/g, " ").trim()).replace(/\[(?=e\d+\])/g, "(");
    if (ref) text = `${ref} ${text}`;
    line = "";
    if (!text || full) return;
    // Two more for the mark that the window puts before each line.
    if (text.length + 3 > room) {
      lines.push(text.slice(0, Math.max(0, room - 4)) + "…");
      full = true;
      return;
    }
    room -= text.length + 3;
    lines.push(text);
  }

  function put(text, ref = "") {
    flush();
    line = text;
    flush(ref);
  }

  function reference(element) {
    let id = state.ids.get(element);
    if (id === undefined) {
      id = state.next++;
      state.ids.set(element, id);
      state.refs.set(id, new WeakRef(element));
      if (state.refs.size > 50000) state.refs.delete(state.refs.keys().next().value);
    }
    return `[e${id}]`;
  }

  function labelOf(element) {
    const aria = element.getAttribute("aria-label");
    if (aria) return aria;
    const by = element.getAttribute("aria-labelledby");
    if (by) {
      const named = by.split(/\s+/).map((id) => element.getRootNode().getElementById(id)?.textContent ?? "").join(" ");
      if (named.trim()) return named;
    }
    if (element.labels?.length) return Array.from(element.labels, (label) => label.textContent).join(" ");
    return element.placeholder || element.title || element.alt || "";
  }

  function fieldText(element) {
    const marks = [];
    if (element === focused) marks.push("focused");
    if (element.disabled) marks.push("disabled");
    if (element.required) marks.push("required");
    if (element.matches(":invalid")) marks.push("invalid");
    const tail = marks.length ? ` (${marks.join(", ")})` : "";
    const label = quote(labelOf(element) || element.name);
    if (element.tagName === "SELECT") {
      const chosen = Array.from(element.selectedOptions, (option) => short(option.text, 80)).join(", ");
      const choices = Array.from(element.options).slice(0, 30).map((option) => short(option.text, 40)).join(" | ");
      const more = element.options.length > 30 ? ` | … ${element.options.length - 30} more` : "";
      return `select ${label}: ${quote(chosen)} of ${choices}${more}${tail}`;
    }
    const type = element.tagName === "TEXTAREA" ? "textarea" : element.type;
    if (type === "checkbox" || type === "radio") return `${type} ${label}: ${element.checked ? "on" : "off"}${tail}`;
    if (type === "submit" || type === "button" || type === "reset" || type === "image") {
      return `button ${quote(element.value || labelOf(element) || type)}${tail}`;
    }
    if (type === "password") return `password ${label} (${[element.value ? "filled in" : "empty", ...marks].join(", ")})`;
    if (type === "file") return `file ${label}: ${element.files.length} chosen${tail}`;
    const value = element === focused ? JSON.stringify(element.value.slice(0, 4000)) : quote(element.value);
    return `${type === "textarea" ? "text area" : "field"} ${label}: ${value}${tail}`;
  }

  const isShown = (element) => !element.checkVisibility || element.checkVisibility({ visibilityProperty: true });

  // The things inside of an element that a person can act on, when its text was written as a whole.
  function inside(element) {
    if (markdown) return;
    for (const each of element.querySelectorAll(ACTIONABLE)) {
      if (full) return;
      const outer = each.parentElement.closest(ACTIONABLE);
      if ((outer === null || outer === element || !element.contains(outer)) && isShown(each)) actionable(each);
    }
  }

  // What a person can act on is one line with a reference. Returns whether the element was such a thing.
  function actionable(element) {
    const tag = element.tagName;
    if (tag === "INPUT" && element.type === "hidden") return true;
    const role = element.getAttribute("role");
    const isField = tag === "INPUT" || tag === "SELECT" || tag === "TEXTAREA";
    const isLink = tag === "A" && element.hasAttribute("href");
    const isButton = tag === "BUTTON" || tag === "SUMMARY" || ROLES.includes(role);
    const isEditable = element.isContentEditable && !element.parentElement?.isContentEditable;
    const isClickable = typeof element.onclick === "function";
    if (!isField && !isLink && !isButton && !isEditable && !isClickable) return false;
    if (element === focused) sawFocus = true;
    const text = element.innerText ?? element.textContent;
    if (markdown) {
      if (isField) put(fieldText(element));
      else if (isLink) line += ` [${short(text, 1000)}](${short(element.href, 500)}) `;
      else if (isEditable) put(text);
      else if (isButton) line += ` ${short(text, 1000)} `;
      else return false;
      return true;
    }
    const ref = reference(element);
    if (isField) put(fieldText(element), ref);
    else if (isEditable) put(`editable text: ${JSON.stringify((text ?? "").slice(0, element === focused ? 4000 : 300))}`, ref);
    else {
      const kind = isLink ? "link" : role || (isButton ? "button" : "clickable");
      const pressed = element.getAttribute("aria-pressed") ?? element.getAttribute("aria-checked") ?? element.getAttribute("aria-selected");
      const marks = [element === focused && "focused", (element.disabled || element.getAttribute("aria-disabled") === "true") && "disabled", pressed && `state ${pressed}`].filter(Boolean);
      const tail = `${isLink ? ` → ${short(element.getAttribute("href"), 120)}` : ""}${marks.length ? ` (${marks.join(", ")})` : ""}`;
      // A large part of a page may be one thing to click on. Then its parts follow.
      if (!isButton && (text ?? "").length > 200) {
        put(`${kind}${tail}, all of this:`, ref);
        return false;
      }
      put(`${kind} ${quote(labelOf(element) || text || element.querySelector("img")?.alt)}${tail}`, ref);
      if (element.firstElementChild) inside(element);
    }
    return true;
  }

  // How many children of a long list have been scrolled away. They stand one below the other, so a few looks suffice.
  function countAbove(children) {
    if (!children || children.length <= 25 || children[0].getBoundingClientRect().bottom >= 0) return 0;
    let low = 0;
    let high = children.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (children[middle].getBoundingClientRect().bottom < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Long lists of things that are alike are folded, but the part with the focus stays whole.
  function visitChildren(parent) {
    const most = markdown ? Infinity : 25;
    let alike = 0;
    let folded = 0;
    let before = "";
    const above = markdown ? 0 : countAbove(parent.children);
    if (above) put(`… ${above} above`);
    const firstSeen = above ? parent.children[above] : null;
    let isAbove = above > 0;
    for (const child of parent.childNodes) {
      if (full) return;
      if (child === firstSeen) isAbove = false;
      if (isAbove && !onTheWay.has(child)) continue;
      if (child.nodeType === 1 && child.tagName === before && ++alike >= most && !onTheWay.has(child)) {
        folded += 1;
        if (parent.childElementCount > 2000 && !onTheWay.has(parent)) {
          put(`… ${parent.childElementCount - most} more`);
          return;
        }
        continue;
      }
      if (child.nodeType === 1 && child.tagName !== before) {
        if (folded) put(`… ${folded} more`);
        before = child.tagName;
        alike = folded = 0;
      }
      visit(child);
    }
    if (folded) put(`… ${folded} more`);
  }

  function row(element) {
    const cells = Array.from(element.cells).slice(0, 50);
    const texts = cells.map((cell) => cell.innerText ?? cell.textContent);
    // Tables are also used to lay out whole pages.
    if (texts.some((text) => text.length > 200)) return false;
    const text = texts.map((each) => short(each, 200).replaceAll("|", "\\|")).join(" | ");
    if (text.replace(/[|\s]/g, "")) put(`| ${text} |`);
    if (markdown && element.parentElement?.tagName === "THEAD") put(`| ${cells.map(() => "---").join(" | ")} |`);
    inside(element);
    return true;
  }

  function visit(node) {
    if (full) return;
    if (++nodes % 64 === 0 && (nodes > options.nodes || performance.now() - begun > options.milliseconds)) {
      flush();
      full = true;
      return;
    }
    if (node.nodeType === 3) {
      const most = markdown ? room : 4000;
      if (line.length < most) line += node.data.length > most ? node.data.slice(0, most) : node.data;
      return;
    }
    if (node.nodeType !== 1 && node.nodeType !== 11) return;
    if (node.nodeType === 1) {
      if (SKIPPED.has(node.tagName) || node.getAttribute("aria-hidden") === "true") return;
      // A slot has no box of its own.
      if (node.tagName !== "SLOT" && !isShown(node)) return;
      if (actionable(node)) return;
      const tag = node.tagName;
      if (tag === "IMG") { if (node.alt) line += ` [image: ${short(node.alt, 120)}] `; return; }
      if (tag === "BR") { flush(); return; }
      if (tag === "HR") { put("---"); return; }
      const heading = /^H([1-6])$/.exec(tag);
      if (heading && !markdown) {
        put(`${"#".repeat(Number(heading[1]))} ${short(node.innerText ?? node.textContent, 300)}`);
        inside(node);
        return;
      }
      if (tag === "PRE") {
        flush();
        for (const each of (node.innerText ?? "").split("\n").slice(0, markdown ? Infinity : 200)) { line = each; flush("", true); }
        inside(node);
        return;
      }
      if (tag === "TR" && row(node)) return;
      const isBlock = BLOCKS.test(tag) || tag.includes("-");
      if (isBlock) flush();
      if (tag === "LI") line = "- ";
      if (heading) line = `${"#".repeat(Number(heading[1]))} `;
      if (tag === "DIALOG" && node.open) put("dialog:");
      if (node.shadowRoot) state.watch(node.shadowRoot);
      // A slot shows what stands between the tags of its host.
      const slotted = tag === "SLOT" ? node.assignedNodes({ flatten: true }) : [];
      if (slotted.length) for (const each of slotted) visit(each);
      else visitChildren(node.shadowRoot ?? node);
      if (isBlock) flush();
      return;
    }
    visitChildren(node);
  }

  if (document.body) visit(document.body);
  flush();
  if (full) lines.push("… the page goes on");
  const text = lines.join("\n");
  // The part with the focus is shown in any case, and whole.
  lines = [];
  if (focused && !sawFocus && !markdown) {
    room = 2000;
    nodes = 0;
    full = false;
    visit(focused.closest("form,fieldset,dialog,tr,li") ?? focused);
    flush();
    if (!sawFocus) { full = false; room = 500; visit(focused); flush(); }
  }
  return {
    text,
    focus: lines.join("\n"),
    next: state.next,
    version: state.version,
    title: document.title,
    scroll: document.scrollingElement ? [Math.round(scrollY), Math.round(innerHeight), document.scrollingElement.scrollHeight] : null,
  };
}
