/** Numbers and times in words. */

const numbers = new Intl.NumberFormat('en');
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
/** With the time zone: logs and runbooks are in UTC, the browser may be in another one. */
const date = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});

/** The word for each status, the same on every view. */
export const statusWords = {
  ok: 'well',
  notice: 'well',
  degraded: 'degraded',
  down: 'down',
  off: 'off',
  unknown: 'unknown',
};

export const count = (value) => numbers.format(value);
export const clockTime = (ms) => clock.format(ms);
export const shortTime = (ms) => shortClock.format(ms);
export const fullTime = (ms) => date.format(ms);

/** Adds a capital and a full stop. */
export function sentence(text) {
  const whole = `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
  return /[.?!…]$/.test(whole) ? whole : `${whole}.`;
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const steps = [
  [60_000, 1_000, 's'],
  [3_600_000, 60_000, 'min'],
  [86_400_000, 3_600_000, 'h'],
  [Number.POSITIVE_INFINITY, 86_400_000, 'd'],
];

export function span(ms) {
  const [, step, unit] = steps.find(([most]) => ms < most) ?? steps[3];
  return `${Math.max(0, Math.floor(ms / step))} ${unit}`;
}

export function ago(ms, nowMs) {
  return nowMs - ms < 2_000 ? 'just now' : `${span(nowMs - ms)} ago`;
}

export function millis(ms) {
  if (ms >= 1_000) return `${Number((ms / 1_000).toPrecision(3))} s`;
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** A number of requests a second. */
export function perSecond(value) {
  return value < 10 ? String(Number(value.toPrecision(2))) : count(Math.round(value));
}

export function percent(part, whole) {
  if (whole === 0 || part === 0) return '0 %';
  const share = (100 * part) / whole;
  if (share < 0.1) return '< 0.1 %';
  return `${share < 10 ? Number(share.toFixed(1)) : Math.round(share)} %`;
}

export function bytes(size) {
  return `${count(Math.round(size / 1024 / 1024))} MiB`;
}
