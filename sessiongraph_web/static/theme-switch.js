// Cycles the colour scheme: as the system has it, light, dark. A cookie lets the server draw the next page right.
const ORDER = ["", "light", "dark"];

customElements.define("theme-switch", class extends HTMLElement {
  connectedCallback() {
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.choose(ORDER[(ORDER.indexOf(this.theme) + 1) % ORDER.length]));
    this.replaceChildren(this.button);
    this.show();
  }

  get name() {
    return this.dataset[this.theme || "system"];
  }

  get theme() {
    return document.documentElement.dataset.theme ?? "";
  }

  choose(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    document.cookie = `sg_theme=${theme}; path=/; samesite=strict; max-age=${theme ? 31536000 : 0}`;
    this.show();
  }

  show() {
    this.button.textContent = this.name;
    this.button.setAttribute("aria-label", this.dataset.label.replace("{name}", this.name));
  }
});
