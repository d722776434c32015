// Follows a live session: asks the JSON twin whether it changed, and brings new cards without moving the reader.
const EVERY_MS = 1500;

customElements.define("follow-live", class extends HTMLElement {
  connectedCallback() {
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  disconnectedCallback() {
    clearInterval(this.timer);
  }

  async look() {
    if (document.hidden || this.busy) return;
    this.busy = true;
    try {
      const headers = this.tag ? { "if-none-match": this.tag } : {};
      const response = await fetch(this.dataset.twin, { headers, cache: "no-store" });
      const changed = response.ok && this.tag && response.headers.get("etag") !== this.tag;
      if (response.ok) this.tag = response.headers.get("etag");
      if (changed) await this.bring();
    } catch {
      this.querySelector("p").textContent = "The server does not answer; trying again.";
    } finally {
      this.busy = false;
    }
  }

  async bring() {
    const response = await fetch(this.dataset.page, { cache: "no-store" });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const atEnd = innerHeight + scrollY >= document.body.scrollHeight - 120;
    for (const turn of page.querySelectorAll("#turns > *")) this.put(turn);
    if (!page.querySelector("follow-live")) this.remove();
    if (atEnd) scrollTo(0, document.body.scrollHeight);
  }

  put(turn) {
    const known = turn.id && document.getElementById(turn.id);
    if (!known) document.getElementById("turns").append(turn);
    else if (known.textContent !== turn.textContent) {
      const open = [...known.querySelectorAll("details")].map((fold) => fold.open);
      turn.querySelectorAll("details").forEach((fold, index) => { fold.open = open[index] ?? fold.open; });
      known.replaceWith(turn);
    }
  }
});
