// The list of all turns beside the transcript: marks the one that is being read, and goes to those on this page.
customElements.define("turn-rail", class extends HTMLElement {
  connectedCallback() {
    this.links = new Map();
    this.seen = new Set();
    this.watch = new IntersectionObserver((entries) => this.note(entries), { rootMargin: "-72px 0px -55% 0px" });
    for (const link of this.querySelectorAll("a")) {
      const turn = document.getElementById(link.hash.slice(1))?.closest(".turn");
      if (!turn || this.links.has(turn)) continue;
      this.links.set(turn, link);
      this.watch.observe(turn);
    }
    this.go = this.go ?? ((event) => this.follow(event));
    this.addEventListener("click", this.go);
    if (!this.placed) this.querySelector(".here")?.scrollIntoView({ block: "nearest" });
    this.placed = true;
  }

  disconnectedCallback() {
    this.watch.disconnect();
  }

  // After turns have come to the page.
  renew() {
    this.disconnectedCallback();
    this.connectedCallback();
  }

  // A turn that is on this page needs no other one; a list that lies over it folds.
  follow(event) {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!document.getElementById(link.hash.slice(1))) return;
    event.preventDefault();
    this.closest("details").open = false;
    location.hash = link.hash;
  }

  note(entries) {
    for (const { target, isIntersecting } of entries) this.seen[isIntersecting ? "add" : "delete"](target);
    const current = [...this.links.keys()].find((turn) => this.seen.has(turn));
    if (!current) return;
    for (const [turn, link] of this.links) {
      if (turn !== current) { link.removeAttribute("aria-current"); continue; }
      link.setAttribute("aria-current", "true");
      const top = link.offsetTop;
      if (top < this.scrollTop || top > this.scrollTop + this.clientHeight - 40) this.scrollTop = top - 80;
    }
  }
});
