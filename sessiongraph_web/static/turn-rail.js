// Marks the turn that is being read in the list of turns beside the transcript.
customElements.define("turn-rail", class extends HTMLElement {
  connectedCallback() {
    this.links = new Map([...this.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
    this.seen = new Set();
    this.watch = new IntersectionObserver((entries) => this.note(entries), { rootMargin: "-72px 0px -55% 0px" });
    for (const id of this.links.keys()) {
      const turn = document.getElementById(id);
      if (turn) this.watch.observe(turn);
    }
  }

  disconnectedCallback() {
    this.watch.disconnect();
  }

  // After turns have come to the page.
  renew() {
    this.disconnectedCallback();
    this.connectedCallback();
  }

  note(entries) {
    for (const { target, isIntersecting } of entries) this.seen[isIntersecting ? "add" : "delete"](target.id);
    const current = [...this.links.keys()].find((id) => this.seen.has(id));
    if (!current) return;
    for (const [id, link] of this.links) link.toggleAttribute("aria-current", id === current);
    this.links.get(current).setAttribute("aria-current", "true");
    this.links.get(current).scrollIntoView({ block: "nearest" });
  }
});
