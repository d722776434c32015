// Shows a moment in the reader's zone; the exact UTC stays in the title. Tells the server the zone for its days.
const LANGUAGE = document.documentElement.lang;
const RELATIVE = new Intl.RelativeTimeFormat(LANGUAGE, { numeric: "auto", style: "narrow" });
const STEPS = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 14, "day", 86400]];
const FORMATS = {
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  date: { weekday: "short", year: "numeric", month: "short", day: "numeric" },
  full: { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  exact: { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  day: { year: "numeric", month: "short", day: "numeric" },
};

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`sg_zone=${zone}`)) {
  document.cookie = `sg_zone=${zone}; path=/; max-age=31536000; samesite=strict`;
}

function relative(date) {
  const seconds = (date - Date.now()) / 1000;
  const step = STEPS.find(([limit]) => Math.abs(seconds) < limit);
  return step ? RELATIVE.format(Math.round(seconds / step[2]), step[1]) : date.toLocaleDateString(LANGUAGE, FORMATS.day);
}

customElements.define("local-time", class extends HTMLElement {
  connectedCallback() {
    const time = this.querySelector("time");
    const date = new Date(time?.dateTime ?? "");
    if (!time || Number.isNaN(date.getTime())) return;
    const style = this.dataset.style;
    time.title = `${time.dateTime} (UTC)\n${date.toLocaleString(LANGUAGE, FORMATS.full)} (${zone})`;
    const format = { ...FORMATS[style] };
    if (["full", "exact"].includes(style) && date.getFullYear() === new Date().getFullYear()) delete format.year;
    time.textContent = FORMATS[style] ? date.toLocaleString(LANGUAGE, format) : relative(date);
  }
});
