import type { CanonicalRequest } from '../http/canonical-request.ts';
import { normaliseLinearly } from '../http/path-folding.ts';
import type { TokenEndpoint } from './endpoints.ts';
import { decode, type FormField, type NotPlain, readFields } from './plain-fields.ts';
import { isPlainToken } from './token-digest.ts';

/** The refresh token that the shop reads in a request, if there is one; `notPlain`: why shops may read another. */
export type Candidate = { readonly token: string | undefined } | { readonly notPlain: NotPlain };

const grantType = fieldNameOf('grant_type');

/**
 * Reads the refresh token from a request. shopward and the shop must not read different tokens in one request, and the shop's
 * parser is not known. So a request that two parsers could read in two ways is not plain, and is not forwarded. Linear in the
 * length of query and body.
 */
export function findCandidate(
  request: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
  endpoints: readonly TokenEndpoint[],
): Candidate {
  const fields = readFields(request, body);
  if (typeof fields === 'string') return { notPlain: fields };
  // RFC 7009 has no grants: a token to revoke is revoked, whatever else the request has.
  const hasGrant = endpoints.every(({ format, kind }) => format === 'form' && kind === 'exchange');
  const names = [...new Set(endpoints.map(({ fields: { refreshToken } }) => refreshToken))].map(fieldNameOf);
  const token = oneValue(fields, names);
  if ('notPlain' in token) return token;
  const grant = hasGrant ? oneValue(fields, [grantType]) : absent;
  if ('notPlain' in grant) return grant;
  // A grant in another place than the token does not count: the shop may not look there.
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

/** Whether a name, as it was read or decoded once more, spells the field: some parsers read a form within JSON. */
function isMisspelled(name: string, meant: FieldName): boolean {
  return spellsField(name, meant) || (name.includes('%') && spellsField(decode(name), meant));
}

/**
 * Whether a value, as it was read or decoded once more, hides the field: some parsers read any type as a form, or a form
 * in a form.
 */
function isHidden(value: string | null, meant: FieldName): boolean {
  if (value === null) return false;
  return hidesField(value, meant) || (value.includes('%') && hidesField(decode(value), meant));
}

/**
 * Whether `grant_type` names another grant than that of RFC 6749 section 6. A malformed name (appendix A.10) does not count:
 * some shops ignore it, as Go does with a malformed escape, and then see only the token.
 */
function isAnotherGrant(grant: string): boolean {
  return /^[\w.:/-]+$/.test(grant) && !foldName(grant).includes('refreshtoken');
}

/** The configured name of a field for a token or a grant, and its folded form. */
interface FieldName {
  readonly exact: string;
  readonly folded: string;
}

function fieldNameOf(exact: string): FieldName {
  return { exact, folded: foldName(exact) };
}

/**
 * Folds a name: removes everything that some parser ignores. That is case by Unicode's rules (Go takes the Kelvin sign for a
 * `k`), compatibility forms, accents, and whatever is neither letter nor digit of ASCII (PHP makes `_` of spaces, dots and an
 * open `[`; frameworks take camelCase for snake_case).
 */
export function foldName(name: string): string {
  const plain = isAscii(name) ? name : normaliseLinearly(name, 'NFKD').toUpperCase();
  return plain.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/**
 * Whether some parser may take `name` for the field. A longer word, such as `refresh_token_expires_in`, is another field; with
 * brackets, dots, quotes or control characters in it, it may be this one, nested or cut short.
 */
function spellsField(name: string, { folded }: FieldName): boolean {
  if (isTooShort(name, folded)) return false;
  const found = foldName(name);
  return found === folded || (found.includes(folded) && !word.test(name));
}

/**
 * Whether a parser of another format may find the field in a value: it contains the name, and characters that words do not
 * have. `refresh_token` as a grant and `refresh-tokens` as a type are words.
 */
function hidesField(value: string, { folded }: FieldName): boolean {
  return !isTooShort(value, folded) && !plainWords.test(value) && foldName(value).includes(folded);
}

/** Whether a text is too short to contain the name. Folding lengthens only what is not ASCII: U+FDFA to 18 characters. */
function isTooShort(text: string, folded: string): boolean {
  return text.length < folded.length && (isAscii(text) || text.length * 18 < folded.length);
}

const word = /^[\w-]*$/;
const plainWords = /^[\w .:/-]*$/;

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
