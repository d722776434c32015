// Comes back from a choice of language to the very place: the address as scripts have made it, and its fragment.
customElements.define("language-switch", class extends HTMLElement {
  connectedCallback() {
    this.addEventListener("submit", () => {
      this.querySelector("[name=next]").value = location.pathname + location.search + location.hash;
    });
  }
});
