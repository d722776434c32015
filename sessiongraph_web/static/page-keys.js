// Keys: j and k walk through what is listed, Shift through prompts, [ and ] through sessions; ? lists them.
const LIST = "sg_list"; // of the sessions listed last, in this tab

customElements.define("page-keys", class extends HTMLElement {
  connectedCallback() {
    document.addEventListener("keydown", (event) => this.press(event));
    this.sessions = document.querySelector("search-palette")?.dataset.sessions;
    const listed = [...document.querySelectorAll("a.row-title")].map((link) => new URL(link.href).pathname);
    const found = [...new Set(listed.filter((path) => this.isSession(path)))];
    if (found.length) sessionStorage.setItem(LIST, JSON.stringify(found));
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
      "[": () => this.leave(-1),
      "]": () => this.leave(1),
      "{": () => this.turn(-1),
      "}": () => this.turn(1),
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

  isSession(path) {
    return this.sessions && path.startsWith(this.sessions) && !path.slice(this.sessions.length).includes("/");
  }

  turn(step) {
    document.querySelector(step < 0 ? "a[rel=prev]" : "a[rel=next]")?.click();
  }

  // From a session to the one beside it in the list that led here, else in the order of their last activity.
  async leave(step) {
    const here = location.pathname.slice(this.sessions?.length).split("/")[0];
    const path = this.sessions + here;
    if (!location.pathname.startsWith(this.sessions)) {
      this.turn(step);
      return;
    }
    let list = JSON.parse(sessionStorage.getItem(LIST) ?? "[]");
    if (!list.includes(path)) list = await this.recent();
    const next = list[list.indexOf(path) + step];
    if (next && list.includes(path)) location.assign(next);
  }

  async recent() {
    const palette = document.querySelector("search-palette");
    const address = new URL(palette.dataset.recent, location.href);
    address.searchParams.set("limit", "100");
    const answer = await (await fetch(address)).json();
    return answer.sessions.map((session) => this.sessions + palette.spell(session.id));
  }

  help() {
    this.append(this.querySelector("template").content.cloneNode(true));
    const dialog = this.lastElementChild;
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
  }
});
