import type { CanonicalRequest } from '../http/canonical-request.ts';
import { normaliseLinearly } from '../http/path-folding.ts';
import type { TokenEndpoint } from './endpoints.ts';
import { decode, type FormField, type NotPlain, readFields } from './plain-fields.ts';
import { isPlainToken } from './token-digest.ts';

/** The refresh token that the shop reads in a request, if there is one; otherwise why shops may disagree about it. */
export type Candidate = { readonly token: string | undefined } | { readonly notPlain: NotPlain };

const grantType = fieldNameOf('grant_type');

/**
 * Reads the refresh token from a request. shopward and the shop must not see different tokens in one request, and not all
 * readers are known. So a request that two readers could read in two ways is not plain, and is not forwarded. Linear in the
 * length of query and body.
 */
export function findCandidate(
  request: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
  endpoints: readonly TokenEndpoint[],
): Candidate {
  const fields = readFields(request, body);
  if (typeof fields === 'string') return { notPlain: fields };
  // RFC 7009 knows no grants: a token that is shown to be ended is ended, whatever stands beside it.
  const hasGrant = endpoints.every(({ format, kind }) => format === 'form' && kind === 'exchange');
  const names = [...new Set(endpoints.map(({ fields: { refreshToken } }) => refreshToken))].map(fieldNameOf);
  const token = oneValue(fields, names);
  if ('notPlain' in token) return token;
  const grant = hasGrant ? oneValue(fields, [grantType]) : absent;
  if ('notPlain' in grant) return grant;
  // Elsewhere than the token it is not what the shop looks at, or not all that it looks at.
  const isOther = grant.place === token.place && isAnotherGrant(grant.value);
  if (token.value === '' || isOther) return { token: undefined };
  return isPlainToken(token.value) ? { token: token.value } : { notPlain: 'token-characters' };
}

const absent = { value: '', place: '' };

/** The value of the one field of any of these names, empty where there is none. */
function oneValue(
  fields: readonly FormField[],
  names: readonly FieldName[],
): { readonly value: string; readonly place: string } | { readonly notPlain: NotPlain } {
  let found: { readonly value: string; readonly place: string } | undefined;
  for (const { name, isExact, value, place } of fields) {
    if (names.some(({ exact }) => exact === name)) {
      if (!isExact) return { notPlain: 'other-spelling' };
      if (found !== undefined) return { notPlain: 'repeated' };
      if (value === null) return { notPlain: 'not-text' };
      found = { value, place };
    } else if (names.some((meant) => isMisspelled(name, meant) || isHidden(value, meant))) {
      return { notPlain: 'other-spelling' };
    }
  }
  return found ?? absent;
}

/** As it was read, or decoded once more: of a text of JSON, too, some readers see the form within. */
function isMisspelled(name: string, meant: FieldName): boolean {
  return spellsField(name, meant) || (name.includes('%') && spellsField(decode(name), meant));
}

/** In the value as it was read, or decoded once more: some read a form whatever its type, and one form in another. */
function isHidden(value: string | null, meant: FieldName): boolean {
  if (value === null) return false;
  return hidesField(value, meant) || (value.includes('%') && hidesField(decode(value), meant));
}

/**
 * RFC 6749 section 4: a grant is named, and it is not that of section 6. What is no name (appendix A.10) may be nothing to
 * the shop, as a bad escape is to Go, and then the token is all that it sees.
 */
function isAnotherGrant(grant: string): boolean {
  return /^[\w.:/-]+$/.test(grant) && !foldName(grant).includes('refreshtoken');
}

/** The name of a field that holds a token or a grant, as it was configured, and what it folds to. */
interface FieldName {
  readonly exact: string;
  readonly folded: string;
}

function fieldNameOf(exact: string): FieldName {
  return { exact, folded: foldName(exact) };
}

/**
 * What is left of a name when everything is taken away that some reader does not look at: case by Unicode's rules (Go
 * takes the Kelvin sign for a `k`), compatibility forms, accents, and whatever is neither letter nor digit of ASCII (PHP
 * makes `_` of spaces, dots and an open `[`; frameworks take camelCase for snake_case).
 */
export function foldName(name: string): string {
  const plain = isAscii(name) ? name : normaliseLinearly(name, 'NFKD').toUpperCase();
  return plain.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/**
 * Whether some reader may take `name` for the field, however it is spelled. A longer word, such as
 * `refresh_token_expires_in`, is another field; with brackets, dots, quotes or controls in it, it may be the same one,
 * nested or cut short.
 */
function spellsField(name: string, { folded }: FieldName): boolean {
  if (isTooShort(name, folded)) return false;
  const found = foldName(name);
  return found === folded || (found.includes(folded) && !word.test(name));
}

/**
 * Whether a value could be taken for the field by a reader of another format: it spells the name, with more around it
 * than words have. `refresh_token` as a grant and `refresh-tokens` as a type are words.
 */
function hidesField(value: string, { folded }: FieldName): boolean {
  return !isTooShort(value, folded) && !plainWords.test(value) && foldName(value).includes(folded);
}

/** Only what is not ASCII can grow, U+FDFA to 18 characters. */
function isTooShort(text: string, folded: string): boolean {
  return text.length < folded.length && (isAscii(text) || text.length * 18 < folded.length);
}

const word = /^[\w-]*$/;
const plainWords = /^[\w .:/-]*$/;

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
