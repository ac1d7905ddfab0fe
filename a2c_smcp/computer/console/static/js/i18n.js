// The page in the reader's language: English, or Chinese if the browser asks for it first.
import en from "./texts-en.js";
import zh from "./texts-zh.js";

const chinese = (navigator.languages ?? [navigator.language]).map((tag) => tag.toLowerCase()).find((tag) => /^(zh|en)\b/.test(tag))?.startsWith("zh");
const texts = chinese ? zh : en;

export const language = chinese ? "zh-CN" : "en";

/** A text by its key, with `{name}` replaced. Where there is one of something, `KEY.one` says so if it exists. */
export function t(key, values = {}) {
  const one = values.count === 1 ? texts[`${key}.one`] : undefined;
  const text = one ?? texts[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });

const otherDay = new Intl.DateTimeFormat(language, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const whole = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "medium" });

/** When something was: short, without the date if that is today; in full; and for programs. */
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  const isToday = at.toDateString() === new Date().toDateString();
  return { short: (isToday ? clock : otherDay).format(at), full: whole.format(at), iso: at.toISOString() };
}

export function date(text) {
  const found = new Date(text);
  return Number.isNaN(found.getTime()) ? text : day.format(found);
}

/** A length of time, as short as it can be said. */
export function duration(seconds) {
  if (seconds < 0.0995) return t("time.ms", { count: Math.max(0, Math.round(seconds * 1000)) });
  if (seconds < 9.95) return t("time.s", { count: seconds.toFixed(1) });
  if (seconds < 60) return t("time.s", { count: Math.floor(seconds) });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return t("time.min", { minutes, seconds: String(Math.floor(seconds % 60)).padStart(2, "0") });
  return t("time.h", { hours: Math.floor(minutes / 60), minutes: minutes % 60 });
}

/** Several names in a row. */
export function listed(names) {
  return names.reduce((first, rest) => t("parts.list", { first, rest }));
}

/** Sentences, one after the other. In Chinese no blank is between them. */
export function sentences(said) {
  return said.join(chinese ? "" : " ");
}
