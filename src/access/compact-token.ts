/**
 * Whether a text is a JWS in compact serialisation (RFC 7515 section 7.1) in its one canonical spelling: three
 * non-empty base64url segments without padding, white space or loose last bits (RFC 4648 section 3.5). Decoders
 * forgive all of these, so without this one token would be an unbounded number of strings.
 *
 * Linear in the length; nothing is decoded.
 */
export function isCompactToken(text: string): boolean {
  const first = text.indexOf('.');
  const second = text.indexOf('.', first + 1);
  return (
    first > 0 &&
    second > 0 &&
    text.indexOf('.', second + 1) === -1 &&
    !foreign.test(text) &&
    isCanonicalSegment(text, 0, first) &&
    isCanonicalSegment(text, first + 1, second) &&
    isCanonicalSegment(text, second + 1, text.length)
  );
}

/** Anything outside the base64url alphabet and the dot; one class, so that nothing can backtrack. */
const foreign = /[^A-Za-z0-9_.-]/;

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Checks the last character: 2 characters hold one octet and 4 loose bits, 3 hold two octets and 2. */
function isCanonicalSegment(text: string, start: number, end: number): boolean {
  const length = end - start;
  const remainder = length % 4;
  if (length === 0 || remainder === 1) return false;
  if (remainder === 0) return true;
  const looseBits = remainder === 2 ? 0b1111 : 0b11;
  return (alphabet.indexOf(text.charAt(end - 1)) & looseBits) === 0;
}
