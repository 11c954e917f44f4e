import type { AddressInfo } from 'node:net';

/** URL of a listener, as this machine reaches it. */
export function addressUrl(scheme: 'http' | 'https', { address, port }: AddressInfo): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
