import { isIP } from 'node:net';
import { z } from 'zod';
import { isIdentityField, isTrustableField } from '../http/field-kinds.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';

// Without this zod generates code (`new Function`) for each map, which does not pay for a configuration that is read once.
z.config({ jitless: true });

/** A section that may be left out: each of its keys has a default, or may be left out, too. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never);
}

/** A section that `false` switches off. */
export function onByDefault<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.union([z.literal(false), z.strictObject(shape)]).prefault({} as never);
}

export function offByDefault<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.union([z.literal(false), z.strictObject(shape)]).default(false);
}

/** A text that is not empty and has no control characters. */
export const text = z
  .string()
  .min(1)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' });

/** A file name, absolute or relative to the configuration file; the loader resolves it. */
export const filePath = text;

export const port = z.int().min(0).max(65_535);

/** An address or a name to listen on. */
export const listenHost = z
  .string()
  .refine((host) => isIP(host) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host), {
    error: 'must be an IP address or a host name',
  });

/** `scheme://host[:port]`, normalised, without a closing slash. */
export const originUrl = address((text) => {
  const { origin, path } = parseUpstreamUrl(text) ?? {};
  return path === '' ? origin : undefined;
}, 'must be http:// or https:// with a host and perhaps a port, without path, query and user');

/** `scheme://host[:port][/path]`, normalised, without a closing slash. */
export const upstreamUrl = address((text) => {
  const parsed = parseUpstreamUrl(text);
  return parsed && parsed.origin + parsed.path;
}, 'must be http:// or https:// with a host, perhaps a port and a path such as /api/v2, without query, user, escapes, empty and dot segments');

function address(normalise: (text: string) => string | undefined, error: string) {
  return z.string().transform((text, context) => {
    const normalised = normalise(text);
    if (normalised === undefined) context.addIssue(error);
    return normalised ?? '';
  });
}

/** An address range such as `10.0.0.0/8`, or one address. */
export const cidr = z
  .string()
  .refine(isCidr, { error: 'must be an IP address or a range such as 10.0.0.0/8' });

function isCidr(value: string): boolean {
  const [address = '', prefix, ...rest] = value.split('/');
  const family = isIP(address);
  if (family === 0 || address.includes('%') || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

const pathText = 'must be a path such as /url-resolver: no closing slash, query or {name}';
/** A path of literal segments, such as `/url-resolver`. */
export const path = z
  .string()
  .regex(/^(\/[^/?#{}\s]+)+$/, { error: pathText, abort: true })
  .transform(canonicalTemplate(pathText));

/** A path of literals and `{name}`s, such as `/carts/{cart_id}`. */
export const pathTemplate = z
  .string()
  .transform(canonicalTemplate('must be a path of literals and {name}s such as /carts/{cart_id}'));

const belowText = 'must be a path of literals and {name}s, perhaps with ** at its end, such as /uploads/**';
/** A path template that may also end in `**`, for everything below: `/uploads/**`. */
export const pathTemplateOrBelow = z.string().transform(canonicalTemplate(belowText, true));

/** Checks a template, and converts it to its canonical spelling as in the protected list, so that requests can match it. */
function canonicalTemplate(error: string, mayEndInRest = false) {
  return (value: string, context: z.core.$RefinementCtx): string => {
    const parsed = parsePathTemplate(value);
    if (isTemplateProblem(parsed)) context.addIssue(`${error}; ${parsed.problem}`);
    else if (parsed.rest ? !mayEndInRest : parsed.segments.length === 0) context.addIssue(error);
    else return parsed.text;
    return value;
  };
}

/** The name of a field that may be accepted from a trusted peer. */
export const trustableField = z
  .string()
  .regex(/^[A-Za-z0-9-]+$/, { error: 'must be a field name of letters, digits and -', abort: true })
  .refine(isTrustableField, { error: 'must not be a field that frames, routes or authorises a request' });

/** The name of a field that only shopward sets. */
export const identityField = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,64}$/, { error: 'must be a field name of letters, digits and -', abort: true })
  .refine(isIdentityField, { error: 'must not be a field that has a meaning of its own' });

/** The units of durations and sizes, the smallest first. */
const msPerUnit: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const bytesPerUnit: Record<string, number> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

const durationPattern = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/;
const sizePattern = /^(\d{1,15})(B|KiB|MiB|GiB)?$/;
const durationText = 'must be a duration with a unit (ms, s, m, h or d), such as 250ms or 30s';
const sizeText = 'must be a size in bytes, or with a unit (B, KiB, MiB or GiB), such as 64KiB';

/** Milliseconds of `250ms`, `1.5s`, `30d`; NaN: not a duration. */
function parseDuration(text: string): number {
  const [, amount, unit = ''] = durationPattern.exec(text) ?? [];
  return Math.round(Number(amount) * (msPerUnit[unit] ?? Number.NaN));
}

/** Bytes of `65536`, `64KiB`, `2MiB`; NaN: not a size. */
function parseSize(text: string): number {
  const [, amount, unit = 'B'] = sizePattern.exec(text) ?? [];
  const bytes = Number(amount) * (bytesPerUnit[unit] ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : Number.NaN;
}

/** A duration with its unit, parsed into milliseconds. At most 24 days by default: a timer of Node ends before 25. */
export function duration({ from = '1ms', to = '24d' } = {}) {
  const [fromMs, toMs] = [parseDuration(from), parseDuration(to)];
  return z
    .string({ error: durationText })
    .regex(durationPattern, { error: durationText })
    .meta({ unit: 'duration' })
    .transform((text, context) => {
      const ms = parseDuration(text);
      if (ms < fromMs) context.addIssue(`must be at least ${from}`);
      if (ms > toMs) context.addIssue(`must be at most ${to}`);
      return ms;
    });
}

/** A size, a number of bytes or with its unit, parsed into bytes. */
export function size({ from = 1, to = Number.MAX_SAFE_INTEGER } = {}) {
  return z
    .union([z.int().min(0), z.string().regex(sizePattern, { error: sizeText })], { error: sizeText })
    .meta({ unit: 'size' })
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : parseSize(value);
      if (!(bytes >= from)) context.addIssue(`must be at least ${from} bytes`);
      if (bytes > to) context.addIssue(`must be at most ${to} bytes`);
      return bytes;
    });
}

/** A parsed `upstream.url`. */
export interface UpstreamAddress {
  readonly scheme: 'http' | 'https';
  /** Lower case; an IPv6 address without its brackets. */
  readonly hostname: string;
  readonly port: number;
  /** `host[:port]`, without the scheme's default port. */
  readonly host: string;
  /** `scheme://host[:port]` */
  readonly origin: string;
  /** Added in front of every request target: `/api/v2`; empty: no prefix. */
  readonly path: string;
}

const addressPattern =
  /^(https?):\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,252}[a-z0-9_])?)(?::(\d{1,5}))?((?:\/[a-z0-9._~:@!$&'()*+,=-]+)*)\/?$/i;

/**
 * Parses an origin (RFC 6454 section 6.1) with an optional path that every parser reads alike: no escapes, no `;`, no empty or
 * dot segments; perhaps with one closing slash. Undefined for anything else: a query, userinfo, another scheme, a port outside
 * 1-65535.
 */
export function parseUpstreamUrl(text: string): UpstreamAddress | undefined {
  const [, given = '', name = '', digits, path = ''] = addressPattern.exec(text) ?? [];
  const scheme = given.toLowerCase() === 'https' ? 'https' : 'http';
  const defaultPort = scheme === 'https' ? 443 : 80;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (name === '' || port < 1 || port > 65_535 || /\/\.+(?:\/|$)/.test(path)) return undefined;
  const host = name.toLowerCase() + (port === defaultPort ? '' : `:${port}`);
  const hostname = name.toLowerCase().replace(/^\[|\]$/g, '');
  return { scheme, hostname, port, host, origin: `${scheme}://${host}`, path };
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1|0:0:0:0:0:0:0:1|::ffff:127(\.\d{1,3}){3})$/i;

/** Whether a host name or address is loopback. */
export function isLoopback(hostname: string): boolean {
  return loopback.test(hostname);
}
