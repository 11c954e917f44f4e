import { z } from 'zod';

/** A number of milliseconds: what every duration of the configuration becomes. */
export type Milliseconds = number;
/** A number of bytes: what every size of the configuration becomes. */
export type Bytes = number;

const msPerUnit: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const bytesPerUnit: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

const durationPattern = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/;
const sizePattern = /^(\d{1,15})(B|KiB|MiB|GiB)?$/;
const durationText = 'must be a duration with a unit (ms, s, m, h or d), such as 250ms or 30s';
const sizeText = 'must be a size in bytes, or with a unit (B, KiB, MiB or GiB), such as 64KiB';

/** `250ms`, `1.5s`, `30d` to milliseconds; undefined when it is not a duration. */
export function parseDuration(text: string): Milliseconds | undefined {
  const [, amount, unit] = durationPattern.exec(text) ?? [];
  if (amount === undefined || unit === undefined) return undefined;
  return Math.round(Number(amount) * (msPerUnit[unit] ?? Number.NaN));
}

/** `65536`, `64KiB`, `2MiB` to bytes; undefined when it is not a size. */
export function parseSize(text: string): Bytes | undefined {
  const [, amount, unit = ''] = sizePattern.exec(text) ?? [];
  const bytes = amount === undefined ? Number.NaN : Number(amount) * (bytesPerUnit[unit] ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

interface DurationBounds {
  /** Shortest that is accepted, as it is written in the configuration; default: more than zero. */
  readonly from?: string;
  /** Longest that is accepted; default: 24d, which is what a timer of Node holds. */
  readonly to?: string;
}

/** A duration: written with its unit, read as milliseconds. */
export function duration(bounds: DurationBounds = {}) {
  const { from = '1ms', to = '24d' } = bounds;
  const [fromMs = 0, toMs = 0] = [parseDuration(from), parseDuration(to)];
  return z
    .string({ error: durationText })
    .regex(durationPattern, { error: durationText })
    .meta({ unit: 'duration' })
    .transform((text, context): Milliseconds => {
      const ms = parseDuration(text) ?? Number.NaN;
      if (ms < fromMs) context.addIssue(`must be at least ${from}`);
      if (ms > toMs) context.addIssue(`must be at most ${to}`);
      return ms;
    });
}

/** A size: a number of bytes, or written with its unit; read as bytes. */
export function size(bounds: { readonly from?: Bytes; readonly to?: Bytes } = {}) {
  const { from = 1, to = Number.MAX_SAFE_INTEGER } = bounds;
  return z
    .union([z.int().min(0), z.string().regex(sizePattern, { error: sizeText })], { error: sizeText })
    .meta({ unit: 'size' })
    .transform((value, context): Bytes => {
      const bytes = typeof value === 'number' ? value : (parseSize(value) ?? Number.NaN);
      if (!(bytes >= from)) context.addIssue(`must be at least ${from} bytes`);
      if (bytes > to) context.addIssue(`must be at most ${to} bytes`);
      return bytes;
    });
}
