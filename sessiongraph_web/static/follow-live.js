// Follows a session: the server says that there is more, and the new cards are put in around the reader.
const POLL_MS = 5000; // where no stream is to be had
const POLLS = 6; // before a stream is asked for again
const REST_MS = 300; // between two fetches
const SETTLE_MS = 2500; // after the last news the head is fetched again: it is from the index,
const SETTLES = 2; // which is asked to look by the first fetch, and knows by the second
const MOST_ITEMS = 3000; // on a page that grows
const PLACES = ["ordinal", "at", "seq", "time", "last"];
const FOCUSABLE = "a, summary, button, input, pre[tabindex]";

// What the server wrote, without what readers and scripts have made of it since.
function written(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) {
    time.textContent = "";
    time.removeAttribute("title");
  }
  for (const button of copy.querySelectorAll("copy-button")) button.replaceChildren();
  for (const fold of copy.querySelectorAll("details")) fold.open = false;
  for (const each of [copy, ...copy.querySelectorAll("[class]")]) each.classList.remove("current");
  return copy.outerHTML;
}

// Replaces an element; folds, the mark of the current item and the focus stay.
function swap(old, fresh) {
  const focusables = [...old.querySelectorAll(FOCUSABLE)];
  const focus = focusables.indexOf(document.activeElement);
  const folds = [...old.querySelectorAll("details")];
  fresh.querySelectorAll("details").forEach((fold, index) => { fold.open = folds[index]?.open ?? fold.open; });
  if (old.classList.contains("current")) fresh.classList.add("current");
  old.replaceWith(fresh);
  if (focus >= 0) fresh.querySelectorAll(FOCUSABLE)[focus]?.focus({ preventScroll: true });
  return fresh;
}

function update(old, fresh) {
  return written(old) === written(fresh) ? old : swap(old, fresh);
}

// Makes the children of one element those of another, and touches none that is the same in both.
function merge(old, fresh) {
  const named = (parent) => {
    const seen = {};
    return [...parent.children].map((child) => {
      const name = child.id || child.classList[0] || child.localName;
      seen[name] = (seen[name] ?? 0) + 1;
      return [child.id || `${name} ${seen[name]}`, child];
    });
  };
  const known = new Map(named(old));
  let before = null;
  for (const [name, child] of named(fresh)) {
    const kept = known.has(name) ? update(known.get(name), child) : child;
    known.delete(name);
    const next = before ? before.nextElementSibling : old.firstElementChild;
    if (next !== kept) old.insertBefore(kept, next);
    before = kept;
  }
  for (const gone of known.values()) gone.remove();
}

customElements.define("follow-live", class extends HTMLElement {
  connectedCallback() {
    this.next = Number(this.dataset.next);
    this.status = this.querySelector("[role=status]");
    this.turns = document.getElementById("turns");
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
    const address = new URL(this.dataset.live, location.href);
    address.searchParams.set("ordinal", this.next);
    this.stream = new EventSource(address);
    this.stream.addEventListener("more", () => this.bring());
    this.stream.addEventListener("rewritten", () => this.end(this.dataset.rewritten));
    this.stream.addEventListener("error", () => {
      if (this.stream.readyState === EventSource.CLOSED) this.poll(POLLS);
    });
  }

  stop() {
    this.stream?.close();
    clearTimeout(this.timer);
    clearTimeout(this.settling);
  }

  end(sentence) {
    this.disconnectedCallback();
    this.say(sentence);
  }

  say(sentence) {
    if (this.status.textContent !== sentence) this.status.textContent = sentence;
  }

  address(ordinal, suffix = "") {
    const address = new URL(location.href);
    for (const name of PLACES) address.searchParams.delete(name);
    address.pathname += suffix;
    address.hash = "";
    address.searchParams.set("ordinal", ordinal);
    return address;
  }

  // Asks again and again, where the server has no stream left or a proxy lets none through.
  poll(left) {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        const response = await fetch(this.address(this.next, ".json"), { cache: "no-store" });
        if (response.status === 401 || response.status === 404) return this.end(this.dataset.gone);
        const answer = response.ok ? await response.json() : { events: [] };
        if (answer.events.some((event) => !event.synthetic)) await this.bring();
      } catch {
        this.say(this.dataset.silent);
      }
      if (!this.isConnected || document.hidden) return undefined;
      return left > 1 ? this.poll(left - 1) : this.start();
    }, POLL_MS);
  }

  async bring(settles = SETTLES) {
    clearTimeout(this.settling);
    if (settles) this.settling = setTimeout(() => this.bring(settles - 1), SETTLE_MS);
    this.wanted = true;
    if (this.busy) return;
    this.busy = true;
    while (this.wanted && this.isConnected) {
      this.wanted = false;
      try {
        await this.fetchAll();
      } catch {
        this.say(this.dataset.silent);
        this.poll(1);
      }
      await new Promise((resolve) => { setTimeout(resolve, REST_MS); });
    }
    this.busy = false;
    if (this.turns.querySelectorAll("[data-item]").length > MOST_ITEMS) {
      this.end(this.dataset.full);
    }
  }

  async fetchAll() {
    const before = this.next;
    let from = Number(this.turns.querySelector(":scope > .turn:last-of-type")?.id.slice(1) || this.dataset.first);
    while (Number.isFinite(from)) {
      const response = await fetch(this.address(from), { cache: "no-store" });
      if (!response.ok) throw new Error(String(response.status));
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      this.put(page);
      const later = page.querySelector("a[rel=next]");
      this.next = Number(page.querySelector("follow-live")?.dataset.next ?? this.next);
      from = later ? Number(new URL(later.href, location.href).searchParams.get("ordinal")) : NaN;
    }
    this.dataset.next = this.next;
    const count = this.next - before;
    if (count > 0) this.say(count === 1 ? this.dataset.one : this.dataset.many.replace("{count}", count));
  }

  put(page) {
    const room = document.documentElement;
    const isAtEnd = scrollY > 0 && innerHeight + scrollY >= room.scrollHeight - 80;
    this.turns.querySelector(":scope > .empty")?.remove();
    for (const turn of page.querySelectorAll("#turns > .turn")) {
      const known = document.getElementById(turn.id);
      if (known) merge(known, turn);
      else this.turns.append(turn);
    }
    this.putBeside(page);
    if (isAtEnd) scrollTo(0, room.scrollHeight);
  }

  // The head, the count of events and the list of turns say what they would say after a reload.
  putBeside(page) {
    for (const part of [".session-head > .facts", ".session-head > .badges"]) {
      const [old, fresh] = [document.querySelector(part), page.querySelector(part)];
      if (old && fresh) update(old, fresh);
    }
    const range = page.querySelector(".pager .quiet")?.textContent.split("–")[1];
    for (const old of document.querySelectorAll(".session-columns .pager .quiet")) {
      if (range) old.textContent = `${old.textContent.split("–")[0]}–${range}`;
    }
    const rail = document.querySelector("turn-rail");
    const listed = new Map([...rail.querySelectorAll("li")].map((line) => [line.querySelector("a").hash, line]));
    for (const line of page.querySelectorAll("turn-rail li")) {
      const old = listed.get(line.querySelector("a").hash);
      if (old) merge(old.firstElementChild, line.firstElementChild);
      else rail.querySelector("ol").append(line);
    }
    rail.renew?.();
  }
});
