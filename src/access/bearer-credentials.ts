import { type FieldList, fieldValues } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { type JsonObject, parseJsonObject } from '../lib/json.ts';

/** Longest accepted token, in characters; tokens of shops have up to 3 KiB. */
export const maxTokenLength = 16 * 1024;

export interface BearerCredentials {
  /** A JWS in its one canonical spelling, or any token where opaque tokens are accepted. */
  readonly token: string;
  /** Value of the one `Authorization` field that is forwarded. */
  readonly canonicalValue: string;
  readonly isDpop?: true;
}

/**
 * Reads the one `Authorization` field (RFC 6750 section 2.1). The scheme is case-insensitive, one or more spaces follow it,
 * and nothing follows the token. An absent or empty field is `access-token-missing`; a field in any other form is
 * `access-token-invalid`. Tokens elsewhere (query, body, cookies, other fields) are not credentials. `takesOpaque`: whether a
 * token need not be a JWS. `takesDpop`: whether the scheme may be DPoP.
 */
export function readBearerCredentials(
  fields: FieldList,
  takesOpaque = false,
  takesDpop = false,
): BearerCredentials | Rejection {
  const values = fieldValues(fields, 'authorization');
  const value = values[0];
  // With two fields the upstream could verify another token than this one.
  if (values.length > 1) return invalid('repeated');
  if (value === undefined || blank.test(value)) return reject('access-token-missing', { reason: 'missing' });
  const isDpop = takesDpop && value.slice(0, dpop.scheme.length).toLowerCase() === dpop.scheme;
  return parse(value, takesOpaque, isDpop ? dpop : bearer);
}

const bearer = { scheme: 'bearer', canonicalStart: 'Bearer ' };
const dpop: Scheme = { scheme: 'dpop', canonicalStart: 'DPoP ', isDpop: true };

interface Scheme extends Pick<BearerCredentials, 'isDpop'> {
  readonly scheme: string;
  readonly canonicalStart: string;
}

/** A scheme followed by credentials (RFC 9110 section 11.4); not a token without a scheme. */
const schemeAndMore = /^[!#$%&'*+.^_`|~\w-]+ +[^ ]/;

function parse(
  value: string,
  takesOpaque: boolean,
  { scheme, canonicalStart, isDpop }: Scheme,
): BearerCredentials | Rejection {
  const afterScheme = scheme.length;
  if (value.slice(0, afterScheme).toLowerCase() !== scheme) {
    return invalid(schemeAndMore.test(value) ? 'other-scheme' : 'scheme');
  }
  let start = afterScheme;
  while (value.charCodeAt(start) === 0x20) start++;
  if (start === afterScheme) return invalid('malformed');
  if (value.length - start > maxTokenLength) return invalid('too-long');
  const token = value.slice(start);
  if (!(takesOpaque ? opaqueToken.test(token) : isCompactToken(token))) return invalid('malformed');
  // Reuse the text as sent if it is canonical: a new long string for each request would be compared once and discarded.
  const isCanonical = start === canonicalStart.length && value.startsWith(canonicalStart);
  const canonicalValue = isCanonical ? value : `${canonicalStart}${token}`;
  return isDpop ? { token, canonicalValue, isDpop } : { token, canonicalValue };
}

/** `b64token` of RFC 6750 section 2.1. */
const opaqueToken = /^[A-Za-z0-9._~+/-]+=*$/;
const blank = /^[ \t]*$/;

function invalid(reason: string): Rejection {
  return reject('access-token-invalid', { reason });
}

/**
 * Whether a text is a JWS in compact serialisation (RFC 7515 section 7.1) in its one canonical spelling: three non-empty
 * base64url segments without padding, white space or unused bits that are not 0 (RFC 4648 section 3.5). Decoders ignore all
 * three, so without this check one token would have any number of spellings.
 *
 * Linear in the length; nothing is decoded.
 */
export function isCompactToken(text: string): boolean {
  const first = text.indexOf('.');
  const second = text.indexOf('.', first + 1);
  return (
    text.indexOf('.', second + 1) === -1 &&
    !foreign.test(text) &&
    isCanonicalSegment(text, 0, first) &&
    isCanonicalSegment(text, first + 1, second) &&
    isCanonicalSegment(text, second + 1, text.length)
  );
}

/** The header (0) or the claims (1) of a compact token, not verified; undefined: it is no JSON object. */
export function readTokenPart(token: string, index: 0 | 1): JsonObject | undefined {
  return parseJsonObject(Buffer.from(token.split('.', 2)[index] ?? '', 'base64url'));
}

/** A character outside the base64url alphabet and the dot. A single character class cannot backtrack. */
const foreign = /[^A-Za-z0-9_.-]/;

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * `end` is -1 if a dot is missing. Checks the last character: 2 characters encode one octet and 4 unused bits, 3 encode
 * two octets and 2 bits.
 */
function isCanonicalSegment(text: string, start: number, end: number): boolean {
  const length = end - start;
  const remainder = length % 4;
  if (length < 1 || remainder === 1) return false;
  if (remainder === 0) return true;
  const looseBits = remainder === 2 ? 0b1111 : 0b11;
  return (alphabet.indexOf(text.charAt(end - 1)) & looseBits) === 0;
}
