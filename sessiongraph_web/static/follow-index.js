// Follows the index: shows how a run goes, and brings what it changed of the page below.
const BRING_MS = 3000; // between two fetches while a run goes on

customElements.define("follow-index", class extends HTMLElement {
  connectedCallback() {
    this.watch = () => (document.hidden ? this.stop() : this.start());
    document.addEventListener("visibilitychange", this.watch);
    this.watch();
  }

  disconnectedCallback() {
    document.removeEventListener("visibilitychange", this.watch);
    this.stop();
  }

  start() {
    this.stop();
    this.stream = new EventSource(this.dataset.live);
    this.stream.addEventListener("indexing", (event) => this.progress(JSON.parse(event.data)));
    this.stream.addEventListener("indexed", (event) => this.ended(JSON.parse(event.data)));
  }

  stop() {
    this.stream?.close();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  progress({ done, total }) {
    if (total < 2) return;
    this.say(this.dataset.progress.replace("{done}", done).replace("{total}", total));
    this.timer ??= setTimeout(() => this.bring(), BRING_MS);
  }

  ended({ epoch }) {
    const isTold = this.childElementCount > 0;
    this.replaceChildren();
    if (isTold || String(epoch) !== this.dataset.epoch) this.bring();
  }

  say(sentence) {
    if (!this.line?.isConnected) {
      this.line = document.createElement("p");
      this.line.className = "notice";
      this.line.setAttribute("role", "status");
      this.replaceChildren(this.line);
    }
    this.line.textContent = sentence;
  }

  // Leaves the page alone while the reader is in the middle of it.
  async bring() {
    this.timer = undefined;
    const main = this.parentElement;
    if (main.querySelector(":focus, .current")) return;
    const response = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.querySelector("follow-index");
    if (!fresh || main.querySelector(":focus, .current")) return;
    this.dataset.epoch = fresh.dataset.epoch;
    while (this.nextSibling) this.nextSibling.remove();
    while (fresh.nextSibling) main.append(fresh.nextSibling);
  }
});
