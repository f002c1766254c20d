// Numbers, times and names as people read them, in the language of their browser.

import { locale, t } from "./texts.js";

const COUNT = new Intl.NumberFormat(locale);
const MANY = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const RELATIVE = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "narrow" });
const DATE = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const MONTH = new Intl.DateTimeFormat(locale, { month: "short", year: "numeric", timeZone: "UTC" });
const SECONDS = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const DAY_MS = 86_400_000;

/** `840 ms`, `4.2 s`, `3 min 5 s`. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${SECONDS.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return t('{0} min {1} s', Math.floor(seconds / 60), seconds % 60);
}

/** How long ago, in short. @param {string} stamp */
export function ago(stamp, now = Date.now()) {
  const ms = Date.parse(stamp) - now;
  if (Number.isNaN(ms)) return "";
  const minutes = Math.round(ms / 60_000);
  if (Math.abs(minutes) < 1) return t('now');
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
  if (at >= today) return t('Today');
  if (at >= today - DAY_MS) return t('Yesterday');
  return at >= today - 6 * DAY_MS ? t('This week') : t('Earlier');
}

/** What a run took: `1,840 in · 96 out · $0.0021 · 4.2 s`; "" where nothing is known. @param {any} run */
export function usage(run) {
  const parts = [];
  const { input_tokens: input, output_tokens: output, cost_usd: cost } = run?.usage ?? {};
  if (input || output) parts.push(t("{0} in", COUNT.format(input ?? 0)), t("{0} out", COUNT.format(output ?? 0)));
  if (cost !== undefined && cost !== null && Number.isFinite(Number(cost))) parts.push(money(Number(cost)));
  const took = Date.parse(run?.finished_at) - Date.parse(run?.created_at);
  if (took > 0) parts.push(duration(took));
  return parts.join(" · ");
}

/** A number; millions in short. @param {number} number */
export const count = (number) => (number < 1e6 ? COUNT : MANY).format(number);

/** Dollars with as many places as say something. @param {number} dollars */
export function money(dollars) {
  const places = dollars === 0 ? 0 : dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2;
  const form = { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", minimumFractionDigits: places, maximumFractionDigits: places };
  return new Intl.NumberFormat(locale, form).format(dollars);
}

/** A month's name. @param {string} month Such as 2026-11. */
export function monthName(month) {
  const at = Date.parse(`${month}-01T00:00:00Z`);
  return Number.isNaN(at) ? month : MONTH.format(at);
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

/** What tells one call of a tool from another: its first arguments, in a line; "" where it has none. @param {object|null} args */
export function hint(args) {
  const plain = Object.entries(args ?? {}).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== "");
  return short(plain.slice(0, 3).map(([name, value]) => (plain.length === 1 ? String(value) : `${name}: ${short(value, 40)}`)).join(", "), 80);
}
