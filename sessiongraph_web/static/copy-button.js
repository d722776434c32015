// Copies a text (`data-text`), or what the next element of a kind after it shows (`data-next`, a tag name).
customElements.define("copy-button", class extends HTMLElement {
  connectedCallback() {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = this.dataset.label;
    button.addEventListener("click", (event) => {
      event.preventDefault();
      this.copy(button);
    });
    this.replaceChildren(button);
  }

  async copy(button) {
    await navigator.clipboard.writeText(this.dataset.text ?? this.next()?.textContent ?? "");
    button.textContent = this.dataset.done;
    setTimeout(() => { button.textContent = this.dataset.label; }, 1500);
  }

  next() {
    const all = [...document.querySelectorAll(this.dataset.next)];
    return all.find((element) => this.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
  }
});
