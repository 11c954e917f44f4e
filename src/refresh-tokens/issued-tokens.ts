import type { FieldList } from '../request/field-list.ts';
import { decodeContent } from './decoded-text.ts';
import type { TokenFields } from './token-endpoints.ts';

/** What the shop's answer gives. */
export interface IssuedTokens {
  readonly refreshToken: string;
  readonly accessToken: string | undefined;
  /** Lifetime of the refresh token, if the answer names one. */
  readonly lifetimeMs: number | undefined;
}

const longestLifetimeSeconds = 36_500 * 86_400;

/** Reads a pair of tokens out of a 2xx answer; undefined where there is no refresh token, or the body is no JSON. */
export function readIssuedTokens(
  body: Buffer,
  fields: FieldList,
  names: readonly TokenFields[],
  maxBytes: number,
): IssuedTokens | undefined {
  const octets = decodeContent(body, fields, maxBytes);
  if (!Buffer.isBuffer(octets)) return undefined;
  for (const object of placesOf(parseJson(octets))) {
    for (const { refreshToken, accessToken, refreshExpiresIn } of names) {
      const token = object[refreshToken];
      if (typeof token !== 'string' || token === '') continue;
      const access = object[accessToken];
      return {
        refreshToken: token,
        accessToken: typeof access === 'string' ? access : undefined,
        lifetimeMs: lifetimeOf(object[refreshExpiresIn]),
      };
    }
  }
  return undefined;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Where the fields may stand: JSON:API attributes, a resource, or the top (RFC 6749 section 5.1). */
function placesOf(document: unknown): readonly JsonObject[] {
  if (!isObject(document)) return [];
  const resources = Array.isArray(document.data) ? document.data : [document.data];
  const objects = resources.filter(isObject);
  return [...objects.map(({ attributes }) => attributes).filter(isObject), ...objects, document];
}

/** Some shops write 0 for a lifetime without end: then, as for anything that is no lifetime, the default counts. */
function lifetimeOf(seconds: unknown): number | undefined {
  const number = typeof seconds === 'string' ? Number(seconds) : seconds;
  if (typeof number !== 'number' || !(number > 0)) return undefined;
  return Math.min(number, longestLifetimeSeconds) * 1000;
}

function parseJson(octets: Buffer): unknown {
  try {
    return JSON.parse(octets.toString('utf8').replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
