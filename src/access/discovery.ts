import { isObject } from '../lib/json.ts';
import type { Fetched, ProviderError } from './provider-fetch.ts';

type Located = { readonly url: string } | { readonly error: ProviderError };

/** Finds the address of a key set; called before each fetch. The caller limits time and size of `get`. */
export type LocateKeySet = (get: (url: string) => Promise<Fetched>) => Promise<Located>;

/**
 * Finds the key set of an issuer in its metadata: RFC 8414 section 3, else OpenID Connect Discovery 1.0 section 4. The
 * `issuer` of a document must equal the configured one octet for octet (RFC 8414 section 3.3): metadata of another issuer
 * would name the keys of that issuer.
 */
export function createDiscovery(issuer: string): LocateKeySet {
  return async (get) => {
    let error: ProviderError = 'status';
    for (const url of metadataUrls(issuer)) {
      const fetched = await get(url);
      const located = 'error' in fetched ? fetched : readMetadata(fetched.value, issuer);
      if ('url' in located) return located;
      // `status`: there was no document. The error of a document that exists is more useful.
      if (error === 'status') error = located.error;
    }
    return { error };
  };
}

/** Both addresses, for an issuer without query and fragment. Exported for its tests. */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
}

function readMetadata(value: unknown, issuer: string): Located {
  if (!isObject(value)) return { error: 'malformed' };
  if (value.issuer !== issuer) return { error: 'other-issuer' };
  const { jwks_uri: url } = value;
  return typeof url === 'string' && isTrusted(url, issuer) ? { url } : { error: 'key-set-url' };
}

/** Whether the address of the keys is as safe as the metadata: with TLS, or on the same server. */
function isTrusted(text: string, issuer: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || url.origin === new URL(issuer).origin;
}
