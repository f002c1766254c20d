// Numbers, times and names as people read them, in the language of their browser.

const COUNT = new Intl.NumberFormat();
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const DAY_MS = 86_400_000;

/** `840 ms`, `4.2 s`, `3 min 5 s`. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** How long ago, in short. @param {string} stamp */
export function ago(stamp, now = Date.now()) {
  const ms = Date.parse(stamp) - now;
  if (Number.isNaN(ms)) return "";
  const minutes = Math.round(ms / 60_000);
  if (Math.abs(minutes) < 1) return "now";
  if (Math.abs(minutes) < 60) return RELATIVE.format(minutes, "minute");
  const hours = Math.round(minutes / 60);
  if (Math.abs(hours) < 24) return RELATIVE.format(hours, "hour");
  const days = Math.round(hours / 24);
  return Math.abs(days) < 7 ? RELATIVE.format(days, "day") : DATE.format(Date.parse(stamp));
}

/** The day and the time, to the second. @param {string} stamp */
export function moment(stamp) {
  const at = Date.parse(stamp);
  return Number.isNaN(at) ? "" : MOMENT.format(at);
}

/** Under which heading a conversation stands. */
export function period(stamp, now = Date.now()) {
  const today = new Date(now).setHours(0, 0, 0, 0);
  const at = Date.parse(stamp);
  if (at >= today) return "Today";
  if (at >= today - DAY_MS) return "Yesterday";
  return at >= today - 6 * DAY_MS ? "This week" : "Earlier";
}

/** What a run took: `1,840 in · 96 out · $0.0021 · 4.2 s`; "" where nothing is known. @param {any} run */
export function usage(run) {
  const parts = [];
  const { input_tokens: input, output_tokens: output, cost_usd: cost } = run?.usage ?? {};
  if (input || output) parts.push(`${COUNT.format(input ?? 0)} in`, `${COUNT.format(output ?? 0)} out`);
  if (cost !== undefined && cost !== null && Number.isFinite(Number(cost))) parts.push(money(Number(cost)));
  const took = Date.parse(run?.finished_at) - Date.parse(run?.created_at);
  if (took > 0) parts.push(duration(took));
  return parts.join(" · ");
}

/** Dollars with as many places as say something. */
function money(dollars) {
  if (dollars === 0) return "$0";
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`;
}

/** `get_workflow_rule` as words; of a tool of a server, `server__tool`, both. */
export function toolName(name) {
  const words = String(name).replace(/__/g, ": ").replace(/[_-]+/g, " ").trim();
  return words === "" ? String(name) : words[0].toUpperCase() + words.slice(1);
}

/** One line of at most so many characters. */
export function short(text, most = 80) {
  const line = String(text).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** A server's words as a sentence. @param {string} text */
export function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
