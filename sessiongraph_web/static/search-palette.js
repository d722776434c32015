// Results under the search box as one types: recent sessions while it is empty, an id opens. Knows input methods.
const WAIT_MS = 160;
const CJK = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]/;
const ID = /^(session-)?[0-9a-f]{6,}[0-9a-f-]*$/i;

function isLongEnough(text) {
  return text.length >= 2 || CJK.test(text);
}

customElements.define("search-palette", class extends HTMLElement {
  connectedCallback() {
    this.input = this.querySelector("input");
    this.box = document.createElement("div");
    this.box.className = "palette";
    this.box.id = "palette";
    this.box.hidden = true;
    this.box.setAttribute("role", "listbox");
    this.box.setAttribute("aria-label", this.dataset.suggestions);
    this.append(this.box);
    for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", "palette"],
      ["aria-autocomplete", "list"]]) this.input.setAttribute(name, value);
    this.input.addEventListener("input", (event) => { if (!event.isComposing) this.later(); });
    this.input.addEventListener("compositionstart", () => clearTimeout(this.timer));
    this.input.addEventListener("compositionend", () => this.later());
    this.input.addEventListener("focus", (event) => {
      this.from = event.relatedTarget;
      if (this.wanted) this.ask();
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        this.open();
      }
    });
    document.addEventListener("pointerdown", (event) => { if (!this.contains(event.target)) this.close(); });
  }

  open() {
    this.wanted = true;
    this.input.focus();
    this.input.select();
    this.ask();
  }

  close() {
    this.wanted = false;
    this.box.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  later() {
    if (document.querySelector("live-search")?.takes(this.input)) return;
    this.wanted = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), WAIT_MS);
  }

  async ask() {
    const text = this.input.value.trim();
    if (text && !isLongEnough(text)) return;
    this.running?.abort();
    this.running = new AbortController();
    const address = text
      ? `${this.dataset.search}.json?${new URLSearchParams({ q: text, limit: "8" })}`
      : this.dataset.recent;
    try {
      const response = await fetch(address, { signal: this.running.signal, headers: { accept: "application/json" } });
      if (response.ok && this.wanted) this.show(text, await response.json());
    } catch (error) {
      if (error.name !== "AbortError") this.say(this.dataset.silent);
    }
  }

  show(text, answer) {
    const options = (answer.sessions ?? []).map((found) => this.option(found.session ?? found, found.best));
    if (ID.test(text)) options.unshift(this.opener(text));
    if (text) options.push(this.everything(text));
    this.box.replaceChildren(...(text ? [] : [this.line(this.dataset.recently)]), ...options);
    if (text && options.length === 1) this.box.prepend(this.line(this.dataset.none));
    options.forEach((option, index) => { option.id = `palette-${index}`; });
    this.box.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.select(text ? options.length - 1 : -1);
  }

  option(session, hit) {
    const address = this.dataset.sessions + this.spell(session.id);
    const log = session.duplicate ? `log=${session.log_id}&` : "";
    const link = this.link(hit ? `${address}?${log}ordinal=${Math.max(0, hit.ordinal - 6)}#e${hit.ordinal}` : address);
    link.append(this.part("what", session.title), this.part("where", hit ? this.around(hit.snippet) : session.cwd ?? ""));
    return link;
  }

  opener(text) {
    const link = this.link(this.dataset.sessions + this.spell(text));
    link.append(this.part("what", this.dataset.open.replace("{id}", text)));
    return link;
  }

  everything(text) {
    const link = this.link(`${this.dataset.search}?${new URLSearchParams({ q: text })}`);
    link.append(this.part("what", this.dataset.all));
    return link;
  }

  around(snippet) {
    const characters = [...snippet.text];
    const start = Math.max(0, (snippet.matches[0]?.[0] ?? 0) - 24);
    return (start ? "…" : "") + characters.slice(start, start + 110).join("");
  }

  spell(id) {
    return [...new TextEncoder().encode(id)].map((byte) => {
      const character = String.fromCharCode(byte);
      if (/[A-Za-z0-9_-]/.test(character)) return character;
      return byte === 32 ? "+" : `~${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    }).join("");
  }

  link(address) {
    const link = document.createElement("a");
    link.href = address;
    link.setAttribute("role", "option");
    link.tabIndex = -1;
    return link;
  }

  part(name, text) {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    return span;
  }

  line(text) {
    const line = document.createElement("p");
    line.textContent = text;
    return line;
  }

  say(text) {
    this.box.replaceChildren(this.line(text));
    this.box.hidden = false;
  }

  get options() {
    return [...this.box.querySelectorAll("[role=option]")];
  }

  select(index) {
    this.at = index;
    this.options.forEach((option, number) => option.setAttribute("aria-selected", String(number === index)));
    const chosen = this.options[index];
    if (chosen) this.input.setAttribute("aria-activedescendant", chosen.id);
    else this.input.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      this.close();
      if (this.from?.isConnected) this.from.focus({ preventScroll: true });
      else this.input.blur();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !this.box.hidden && this.options.length) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.select((this.at + step + this.options.length) % this.options.length);
      this.moved = true;
    } else if (event.key === "Enter" && this.moved && !this.box.hidden && this.options[this.at]) {
      event.preventDefault();
      this.options[this.at].click();
    }
  }
});
