import type { FieldList } from '../http/field-list.ts';
import { decodeContent } from './decoded-text.ts';
import { foldName } from './named-values.ts';
import type { TokenFields } from './token-endpoints.ts';

/** What the shop's answer gives. */
export interface IssuedTokens {
  readonly refreshToken: string;
  readonly accessToken: string | undefined;
  /** Lifetime of the refresh token, if the answer names one. */
  readonly lifetimeMs: number | undefined;
}

const longestLifetimeSeconds = 36_500 * 86_400;

/** Every refresh token of an answer; `unreadable`: there may be some that cannot be read. */
export type IssuedAnswer = readonly IssuedTokens[] | 'unreadable';

/** Refresh tokens that one answer may hold; shops give one. */
const most = 8;

/**
 * Reads the tokens out of a 2xx answer: JSON, in which they stand anywhere behind their names, however those are spelled,
 * since some shops let the client choose the shape. Any other answer may hold a token unless it is empty, or a short text.
 */
export function readIssuedTokens(
  body: Buffer,
  fields: FieldList,
  names: readonly TokenFields[],
  maxBytes: number,
): IssuedAnswer {
  const octets = decodeContent(body, fields, maxBytes);
  if (!Buffer.isBuffer(octets)) return 'unreadable';
  if (octets.length === 0) return [];
  const document = parseJson(octets);
  if (typeof document !== 'object' || document === null) {
    return holdsNoToken(octets.toString('latin1'), names) ? [] : 'unreadable';
  }
  const issued = tokensOf(document, names);
  return issued.length > most ? 'unreadable' : issued;
}

/** Every object in turn, without recursion: an answer may be nested as deep as it is long. */
function tokensOf(document: object, names: readonly TokenFields[]): readonly IssuedTokens[] {
  const folded = (of: (fields: TokenFields) => string) => new Set(names.map((name) => foldName(of(name))));
  const refresh = folded(({ refreshToken }) => refreshToken);
  const access = folded(({ accessToken }) => accessToken);
  const lifetime = folded(({ refreshExpiresIn }) => refreshExpiresIn);
  const found: IssuedTokens[] = [];
  const waiting: object[] = [document];
  for (let next = waiting.pop(); next !== undefined && found.length <= most; next = waiting.pop()) {
    const texts: string[] = [];
    let accessToken: string | undefined;
    let lifetimeMs: number | undefined;
    for (const [name, value] of Object.entries(next)) {
      if (typeof value === 'object' && value !== null) waiting.push(value);
      const folded = foldName(name);
      if (refresh.has(folded)) texts.push(...textsOf(value));
      else if (access.has(folded)) accessToken ??= typeof value === 'string' ? value : undefined;
      else if (lifetime.has(folded)) lifetimeMs ??= lifetimeOf(value);
    }
    found.push(
      ...texts.slice(0, most + 1).map((refreshToken) => ({ refreshToken, accessToken, lifetimeMs })),
    );
  }
  return found;
}

function textsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.filter((one) => typeof one === 'string').slice(0, most + 1);
  return (typeof value === 'string' && value !== '') || typeof value === 'number' ? [String(value)] : [];
}

/** Printable, without the name of the field, or a word that is long enough to be a secret: `OK`, say. */
function holdsNoToken(text: string, names: readonly TokenFields[]): boolean {
  if (/[^\t\r\n\x20-\x7e]|[^\s<>"'&;:]{16}/.test(text)) return false;
  const folded = foldName(text);
  return !names.some(({ refreshToken }) => folded.includes(foldName(refreshToken)));
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
