// Keeps in the address, and in the links inside the session, which kinds of cards are not shown.
customElements.define("show-kinds", class extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", () => this.keep());
  }

  keep() {
    const hidden = [...this.querySelectorAll("input:not(:checked)")].map((box) => box.value).join(",");
    const set = (address) => {
      if (hidden) address.searchParams.set("hide", hidden);
      else address.searchParams.delete("hide");
      return address;
    };
    history.replaceState(null, "", set(new URL(location.href)));
    for (const link of document.querySelectorAll(".pager a, nav.found a.button, .rail a")) link.href = set(new URL(link.href));
  }
});
