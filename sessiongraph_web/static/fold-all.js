// Opens or closes every fold inside another element (`data-inside`, a selector).
customElements.define("fold-all", class extends HTMLElement {
  connectedCallback() {
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.textContent = "Unfold all";
    this.button.addEventListener("click", () => this.turn());
    this.replaceChildren(this.button);
  }

  turn() {
    const open = this.button.textContent === "Unfold all";
    for (const fold of document.querySelectorAll(`${this.dataset.inside} details:not(.plumbing)`)) fold.open = open;
    this.button.textContent = open ? "Fold all" : "Unfold all";
  }
});
