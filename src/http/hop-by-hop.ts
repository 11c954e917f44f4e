/** Fields that belong to one connection (RFC 9110 section 7.6.1, and what old peers send); lower case. */
export const hopByHopNames: readonly string[] = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Names of the connection options in one value of `Connection`, in lower case; empty for the common values. */
export function readNominations(value: string): readonly string[] {
  if (value === 'keep-alive' || value === 'close') return none;
  return value
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && option !== 'keep-alive' && option !== 'close');
}

const none: readonly string[] = [];

/**
 * Whether a nomination would take a field away that decides something here or at the upstream: such a request is
 * refused rather than repaired. `name` is in lower case.
 */
export function isNeverHopByHop(name: string): boolean {
  return neverHopByHop.has(name) || /^(?:content-|if-|accept)/.test(name);
}

const neverHopByHop = new Set([
  'authorization',
  'cookie',
  'expect',
  'host',
  'origin',
  'range',
  'transfer-encoding',
]);
