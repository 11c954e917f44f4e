import type { CanonicalRequest } from './canonical-request.ts';
import { decodeEscapes } from './path-folding.ts';
import { type EncodedSlashRules, maxSegments, readEncodedSlashes } from './path-template.ts';
import { type Rejection, reject } from './rejection.ts';

/** The canonical form of a request target. Exported for its tests. */
export type CanonicalTarget = Pick<CanonicalRequest, 'path' | 'query' | 'segments' | 'alternativeSegments'>;

/** Octets of a path as sent; a longer one is 414. RFC 9110 section 4.1 asks for at least 8000. */
export const maxPathOctets = 8192;

const plain = 0;
const slash = 1;
const query = 2;
const percent = 3;
const refused = 4;
const slashCode = 0x2f;

const pathOctets = Uint8Array.from({ length: 128 }, (_, code) => {
  const octet = String.fromCharCode(code);
  if (code <= 0x20 || code === 0x7f || octet === '#' || octet === '\\') return refused;
  return octet === '/' ? slash : octet === '?' ? query : octet === '%' ? percent : plain;
});

/**
 * Reads a request target (RFC 9112 section 3.2) into the path that is matched and forwarded, or refuses it. One pass
 * over a target without escapes. `host` is the canonical Host, which an absolute-form must repeat.
 */
export function canonicaliseTarget(
  target: string,
  host: string | undefined,
  encodedSlash: EncodedSlashRules,
): CanonicalTarget | Rejection {
  const origin = target.charCodeAt(0) === slashCode ? target : originForm(target, host);
  if (origin === undefined) return refuse('not-origin-form');

  // Any run of leading slashes counts as one.
  let start = 0;
  while (origin.charCodeAt(start + 1) === slashCode) start++;

  const segments: string[] = [];
  let segmentStart = start + 1;
  let hasEscapes = false;
  let end = segmentStart;
  for (; end < origin.length; end++) {
    const meaning = pathOctets[origin.charCodeAt(end)] ?? refused;
    if (meaning === plain) continue;
    if (meaning === query) break;
    if (meaning === refused) return refuse(reasonFor(origin.charAt(end)));
    if (meaning === percent) hasEscapes = true;
    else {
      segments.push(origin.slice(segmentStart, end));
      if (segments.length === maxSegments) return refuse('too-many-segments');
      segmentStart = end + 1;
    }
  }
  if (end > maxPathOctets) return reject('target-too-long');
  segments.push(origin.slice(segmentStart, end));

  const path = start === 0 && end === origin.length ? origin : origin.slice(start, end);
  const rest = origin.slice(end);
  const queryFault = validateQuery(rest);
  if (queryFault !== undefined) return refuse(queryFault);
  if (hasEscapes) return canonicaliseEscaped(path, rest, encodedSlash);
  return withoutFaults({ path, query: rest, segments, alternativeSegments: undefined });
}

function canonicaliseEscaped(
  sent: string,
  query: string,
  encodedSlash: EncodedSlashRules,
): CanonicalTarget | Rejection {
  const decoded = decodeEscapes(sent);
  if ('fault' in decoded) return refuse(decoded.fault);
  const { path } = decoded;
  const segments = path.slice(1).split('/');
  if (!path.includes('%2F')) return withoutFaults({ path, query, segments, alternativeSegments: undefined });
  const alternativeSegments = readEncodedSlashes(segments, encodedSlash);
  if (alternativeSegments === undefined) return refuse('encoded-slash');
  if (alternativeSegments.length > maxSegments) return refuse('too-many-segments');
  return withoutFaults({ path, query, segments, alternativeSegments });
}

const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/is;

/** The origin-form of an absolute-form (RFC 9112 section 3.2.2); undefined for any other form, and if the authority is not Host. */
function originForm(target: string, host: string | undefined): string | undefined {
  const [, authority, rest = ''] = absoluteForm.exec(target) ?? [];
  if (authority === undefined || authority.toLowerCase() !== host) return undefined;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The query is forwarded byte for byte. Only octets that no request target may contain are refused. */
function validateQuery(query: string): string | undefined {
  for (let i = 0; i < query.length; i++) {
    const code = query.charCodeAt(i);
    if (code <= 0x20 || code >= 0x7f || code === 0x23) return reasonFor(query.charAt(i));
  }
  return undefined;
}

function withoutFaults(target: CanonicalTarget): CanonicalTarget | Rejection {
  const fault =
    faultOf(target.segments) ?? (target.alternativeSegments && faultOf(target.alternativeSegments));
  return fault === undefined ? target : refuse(fault);
}

/**
 * Why servers may read one of the segments in two ways. Segments are canonical: their dots are bare. Some servers drop `;params`,
 * and some file systems spaces and dots at the end alike, so spaces between dots count.
 */
function faultOf(segments: readonly string[]): string | undefined {
  for (const segment of segments) {
    const first = segment.charCodeAt(0);
    if (first !== 0x2e && first !== 0x25 && first !== 0x28) continue;
    // ASP.NET drops `(S(x))`, whether it is a whole segment or followed by more: `/(S(x))/orders` is `/orders`.
    if (/^(?:\(|%28)[A-Z](?:\(|%28)/.test(segment)) return 'session-segment';
    const [name = ''] = segment.replaceAll('%20', ' ').split(/;|%3B/, 1);
    if (/^(?:\.\.?|(?=.* )(?=.*\.)[. ]+)$/.test(name)) return 'dot-segment';
  }
  return undefined;
}

function reasonFor(octet: string): string {
  if (octet === '\\') return 'backslash';
  if (octet === '#') return 'fragment';
  return octet > '\x7f' ? 'non-ascii' : 'control-character';
}

function refuse(reason: string): Rejection {
  return reject('bad-request-target', { reason });
}

/**
 * The canonical value of a Host field (RFC 9110 section 7.2): `host[:port]` in lower case, a registered name of
 * letters, digits, `-`, `_` and dots, or an IPv6 literal; undefined for anything else. No user, no escapes, no empty
 * port, so that the value is fit for links and keys.
 */
export function canonicaliseHost(sent: string): string | undefined {
  if (sent.length > maxHostOctets) return undefined;
  const match = hostAndPort.exec(sent);
  if (match === null) return undefined;
  // By index: destructuring would cost each request an iterator.
  const literal = match[2];
  const port = match[3];
  if (literal !== undefined && !isIpv6(literal)) return undefined;
  if (port !== undefined && (Number(port) === 0 || Number(port) > 65_535)) return undefined;
  return sent.toLowerCase();
}

/** Octets of the longest Host: a name of 253, or a literal of 39 in brackets, a dot at the end and a port. */
const maxHostOctets = 260;

const hostAndPort = /^(?:([a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)|\[([0-9a-f:]+)\])(?::(\d{1,5}))?$/i;

/** RFC 3986 section 3.2.2, without the dotted form of the last 32 bits. */
function isIpv6(literal: string): boolean {
  const halves = literal.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  if (!groups.every((group) => group.length >= 1 && group.length <= 4)) return false;
  return halves.length === 2 ? groups.length < 8 : groups.length === 8;
}
