// On the search page, results follow the query as it is typed; the address follows too.
const WAIT_MS = 250;

customElements.define("live-search", class extends HTMLElement {
  connectedCallback() {
    this.input = document.querySelector("search-palette input");
    this.input?.addEventListener("input", (event) => { if (!event.isComposing) this.later(); });
    this.input?.addEventListener("compositionstart", () => clearTimeout(this.timer));
    this.input?.addEventListener("compositionend", () => this.later());
  }

  takes(input) {
    return input === this.input;
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.follow(), WAIT_MS);
  }

  async follow() {
    const query = this.input.value.trim();
    if (!query) return;
    const address = new URL(location.href);
    address.searchParams.set("q", query);
    address.searchParams.delete("cursor");
    this.running?.abort();
    this.running = new AbortController();
    try {
      const response = await fetch(address, { signal: this.running.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const found = page.querySelector("live-search");
      if (!found) return;
      this.replaceChildren(...found.childNodes);
      history.replaceState(null, "", address);
      document.title = page.title;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }
});
