/**
 * Who is one client, as far as an address tells: an IPv4 address, or the first 64 bits of an IPv6 address, all others of
 * which are its holder's to choose (RFC 4291 section 2.5.4).
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
    while (groups.length + last < 8) groups.push('0');
  }
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
