// Says in place of a link how much the download of a set of sessions would hold; without scripts the link leads to it.
const UNITS = ["B", "KiB", "MiB", "GiB"];

function size(bytes) {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** step).toLocaleString(document.documentElement.lang, { maximumFractionDigits: 1 })} ${UNITS[step]}`;
}

customElements.define("set-size", class extends HTMLElement {
  connectedCallback() {
    const link = this.querySelector("a");
    link?.addEventListener("click", (event) => {
      event.preventDefault();
      this.ask(link.href);
    });
  }

  async ask(address) {
    const answer = await fetch(address).then((response) => response.json(), () => null);
    if (!answer?.ok) {
      location.assign(address);
      return;
    }
    this.setAttribute("role", "status");
    this.textContent = this.dataset.said.replace("{size}", size(answer.bytes));
  }
});
