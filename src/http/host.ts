/**
 * The canonical value of a Host field (RFC 9110 section 7.2): `host[:port]` in lower case, a registered name of
 * letters, digits, `-`, `_` and dots, or an IPv6 literal; undefined for anything else. No user, no escapes, no empty
 * port, so that the value is fit for links and keys.
 */
export function canonicaliseHost(sent: string): string | undefined {
  if (sent.length > maxHostOctets) return undefined;
  const match = hostAndPort.exec(sent);
  if (match === null) return undefined;
  // By index: taken apart as a list, they would cost each request an iterator.
  const literal = match[2];
  const port = match[3];
  if (literal !== undefined && !isIpv6(literal)) return undefined;
  if (port !== undefined && (Number(port) === 0 || Number(port) > 65_535)) return undefined;
  return sent.toLowerCase();
}

/** 253 of a name, or 39 of a literal in brackets, a dot at the end and a port. */
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
