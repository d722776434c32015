// Keys: j and k walk through what is listed, Shift through prompts, [ and ] through pages; ? lists them.
const HELP = [
  [["j", "k"], "next, previous item"],
  [["J", "K"], "next, previous prompt"],
  [["o"], "open or unfold it"],
  [["[", "]"], "previous, next page"],
  [["/"], "search"],
  [["Ctrl", "K"], "recent sessions, search as you type"],
  [["e"], "export this session"],
  [["?"], "this list"],
];

customElements.define("page-keys", class extends HTMLElement {
  connectedCallback() {
    document.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const act = {
      j: () => this.walk("[data-item]", 1),
      k: () => this.walk("[data-item]", -1),
      J: () => this.walk("[data-prompt]", 1),
      K: () => this.walk("[data-prompt]", -1),
      o: () => this.open(),
      "[": () => document.querySelector("a[rel=prev]")?.click(),
      "]": () => document.querySelector("a[rel=next]")?.click(),
      "/": () => document.querySelector("#q")?.focus(),
      e: () => document.querySelector("[data-export]")?.click(),
      "?": () => this.help(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  walk(selector, step) {
    const all = [...document.querySelectorAll(selector)].filter((item) => item.checkVisibility());
    const current = document.querySelector("[data-item].current");
    let index = all.indexOf(current);
    if (index < 0) index = this.beside(all, current, step);
    const next = all[Math.min(all.length - 1, Math.max(0, index + step))];
    if (!next) return;
    current?.classList.remove("current");
    next.classList.add("current");
    next.scrollIntoView({ block: "nearest" });
    const target = next.querySelector(":scope > details > summary, .row-title, a");
    target?.focus({ preventScroll: true });
  }

  beside(all, current, step) {
    if (!current) return step > 0 ? -1 : all.length;
    const after = all.findIndex((item) => current.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING);
    if (after < 0) return step > 0 ? all.length - 1 : all.length;
    return step > 0 ? after - 1 : after;
  }

  open() {
    const current = document.querySelector("[data-item].current");
    const fold = current?.querySelector(":scope > details");
    if (fold) fold.open = !fold.open;
    else (current?.querySelector(".row-title") ?? current?.querySelector("a"))?.click();
  }

  help() {
    const dialog = document.createElement("dialog");
    const heading = document.createElement("h2");
    heading.textContent = "Keys";
    const list = document.createElement("dl");
    for (const [keys, meaning] of HELP) {
      const term = document.createElement("dt");
      term.append(...keys.map((key) => Object.assign(document.createElement("kbd"), { textContent: key })));
      list.append(term, Object.assign(document.createElement("dd"), { textContent: meaning }));
    }
    const close = Object.assign(document.createElement("button"), { className: "button", textContent: "Close" });
    close.addEventListener("click", () => dialog.close());
    dialog.setAttribute("aria-label", "Keys");
    dialog.append(heading, list, close);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
});
