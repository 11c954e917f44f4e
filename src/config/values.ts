import { isIP } from 'node:net';
import { z } from 'zod';
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

const literalPath = /^(\/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+$/;
const segmentOfTemplate = /^(\{[A-Za-z_]\w*\}|[A-Za-z0-9._~!$&'()+,;=:@-]+)$/;

/** A path of literal segments, such as `/url-resolver`. */
export function path() {
  return z
    .string()
    .regex(literalPath, { error: 'must be a path such as /url-resolver: no closing slash, query or {name}' });
}

/** A path of literals and `{name}`s, such as `/carts/{cart_id}`. */
export function pathTemplate() {
  return z
    .string()
    .refine(isPathTemplate, { error: 'must be a path of literals and {name}s such as /carts/{cart_id}' });
}

function isPathTemplate(value: string): boolean {
  const [first, ...segments] = value.split('/');
  const names = segments.filter((segment) => segment.startsWith('{'));
  const isWellFormed =
    first === '' && segments.length > 0 && segments.every((one) => segmentOfTemplate.test(one));
  return isWellFormed && new Set(names).size === names.length;
}

/** A field name (RFC 9110 section 5.1), of the characters that shopward forwards. */
export function fieldName() {
  return z.string().regex(/^[A-Za-z0-9-]+$/, { error: 'must be a field name of letters, digits and -' });
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
