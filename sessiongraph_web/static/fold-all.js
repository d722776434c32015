// Opens or closes every fold inside another element (`data-inside`, a selector), and the one that an address seeks.
customElements.define("fold-all", class extends HTMLElement {
  connectedCallback() {
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.textContent = this.dataset.unfold;
    this.button.addEventListener("click", () => this.turn());
    this.replaceChildren(this.button);
    this.seek();
    window.addEventListener("hashchange", () => this.seek());
  }

  // By the address itself: nothing is a target yet where this runs before the page is laid out.
  seek() {
    const sought = document.getElementById(location.hash.slice(1));
    const fold = sought?.closest("details") ?? sought?.querySelector(":scope > details");
    if (!fold || fold.open) return;
    fold.open = true;
    sought.scrollIntoView();
  }

  turn() {
    const open = this.button.textContent === this.dataset.unfold;
    for (const fold of document.querySelectorAll(`${this.dataset.inside} details:not(.plumbing)`)) fold.open = open;
    this.button.textContent = open ? this.dataset.fold : this.dataset.unfold;
  }
});
