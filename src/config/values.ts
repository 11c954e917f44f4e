import { isIP } from 'node:net';
import { z } from 'zod';
import { isTrustableField } from '../http/field-kinds.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';
import { parseOrigin } from './origin.ts';

/** Printable text that is not empty. */
export function text() {
  return (
    z
      .string()
      .min(1)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
      .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not hold control characters' })
  );
}

/** A file, absolute or relative to the configuration file; the loader resolves it. */
export function filePath() {
  return text();
}

export function port() {
  return z.int().min(0).max(65_535);
}

/** An address or a name to listen on. */
export function listenHost() {
  const message = 'must be an IP address or a host name';
  return z.string().refine((host) => isIP(host) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host), {
    error: message,
  });
}

/** `scheme://host[:port]`, read as its normal form without a closing slash. */
export function originUrl() {
  return z.string().transform((value, context) => {
    const origin = parseOrigin(value);
    if (origin === undefined) {
      context.addIssue(
        'must be http:// or https:// with a host and perhaps a port, without path, query and user',
      );
    }
    return origin?.origin ?? '';
  });
}

/** An address range such as `10.0.0.0/8`, or one address. */
export function cidr() {
  return z.string().refine(isCidr, { error: 'must be an IP address or a range such as 10.0.0.0/8' });
}

function isCidr(value: string): boolean {
  const [address = '', prefix, ...rest] = value.split('/');
  const family = isIP(address);
  if (family === 0 || address.includes('%') || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

const literalPath = /^(\/[^/?#{}\s]+)+$/;

/** A path of literal segments, such as `/url-resolver`. */
export function path() {
  const error = 'must be a path such as /url-resolver: no closing slash, query or {name}';
  return z.string().regex(literalPath, { error, abort: true }).transform(canonicalTemplate(error));
}

/** A path of literals and `{name}`s, such as `/carts/{cart_id}`. */
export function pathTemplate() {
  return z
    .string()
    .transform(canonicalTemplate('must be a path of literals and {name}s such as /carts/{cart_id}'));
}

/** Checked, and read in its canonical spelling, as the paths of the protected list are: what is taken can be met. */
function canonicalTemplate(error: string) {
  return (value: string, context: z.core.$RefinementCtx): string => {
    const parsed = parsePathTemplate(value);
    if (isTemplateProblem(parsed)) context.addIssue(`${error}; ${parsed.problem}`);
    else if (parsed.rest || parsed.segments.length === 0) context.addIssue(error);
    else return parsed.text;
    return value;
  };
}

/** The name of a field that may be believed of a trusted peer. */
export function trustableField() {
  return z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, { error: 'must be a field name of letters, digits and -', abort: true })
    .refine(isTrustableField, { error: 'must not be a field that frames, routes or authorises a request' });
}

/** A list without repetitions. */
export function distinct<T extends z.ZodType>(item: T) {
  return z.array(item).check((context) => {
    const seen = new Set<unknown>();
    for (const [index, value] of context.value.entries()) {
      if (seen.has(value)) {
        context.issues.push({
          code: 'custom',
          message: 'stands twice in this list',
          path: [index],
          input: value,
        });
      }
      seen.add(value);
    }
  });
}
