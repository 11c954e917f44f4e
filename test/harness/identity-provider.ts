import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import Provider from 'oidc-provider';
import * as openid from 'openid-client';
import type { Signer } from '../unit/access/signing.ts';
import { freePort } from './free-port.ts';
import { listen } from './listen.ts';

export type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;

export const client = { id: 'shop:ward', secret: 'a secret + of the client' };

/**
 * A real identity provider on loopback, and a real client of it. `tls`: certificate and key of a second port, at which
 * tokens are bound to the client's certificate.
 */
export async function startIdentityProvider(
  signer: Signer,
  tls?: { readonly cert: string; readonly key: string },
) {
  const counts = new Map<string, number>();
  let handle: ReturnType<Provider['callback']> = (_, response) => response.end();
  // A port that no other process gets while the provider is down.
  const port = await freePort();
  const serve = () =>
    listen(
      createServer((request, response) => {
        const path = request.url ?? '';
        counts.set(path, (counts.get(path) ?? 0) + 1);
        handle(request, response);
      }),
      { port },
    );
  let server = await serve();
  const issuer = server.url;
  const store = memoryAdapter();
  const options = { ...tls, requestCert: true, rejectUnauthorized: false };
  const secure = tls && (await listen(createSecureServer(options, (...both) => handle(...both))));
  const mtls = secure && `https://127.0.0.1:${secure.port}/token`;
  const use = (key: Signer) => {
    handle = new Provider(issuer, configurationOf(key, store, mtls)).callback();
  };
  use(signer);
  const config = await openid.discovery(new URL(issuer), client.id, metadataOf(mtls), undefined, {
    execute: [openid.allowInsecureRequests],
  });
  return {
    issuer,
    config,
    /**
     * Issues an access token by the client credentials grant; `format` selects the resource. `mtls`: a fetch with a client
     * certificate, to which the token is bound.
     */
    async issue(format: 'jwt' | 'opaque', DPoP?: openid.DPoPHandle, mtls?: openid.CustomFetch) {
      if (mtls !== undefined) config[openid.customFetch] = mtls;
      const parameters = { scope: 'customer', resource: `urn:shop:${format}` };
      return (await openid.clientCredentialsGrant(config, parameters, DPoP && { DPoP })).access_token;
    },
    revoke: (token: string) => openid.tokenRevocation(config, token),
    /** How often a path was requested. */
    hits: (path: string) => counts.get(path) ?? 0,
    /** Signs with another key from now on, under the same issuer. */
    rotate: use,
    goDown: () => server.close(),
    async comeBack() {
      server = await serve();
    },
    close: async () => void (await Promise.all([server.close(), secure?.close()])),
  };
}

function metadataOf(mtls: string | undefined) {
  return { client_secret: client.secret, use_mtls_endpoint_aliases: mtls !== undefined };
}

function configurationOf(
  { privateKey, kid, alg }: Signer,
  adapter: unknown,
  mtls: string | undefined,
): object {
  return {
    adapter,
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }] },
    cookies: { keys: ['of no use here'] },
    clients: [
      {
        ...{ client_id: client.id, client_secret: client.secret, grant_types: ['client_credentials'] },
        ...{ redirect_uris: [], response_types: [], scope: 'customer' },
        ...(mtls && { tls_client_certificate_bound_access_tokens: true }),
      },
    ],
    scopes: ['customer'],
    ...(mtls && { discovery: { mtls_endpoint_aliases: { token_endpoint: mtls } } }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      mTLS: {
        enabled: mtls !== undefined,
        certificateBoundAccessTokens: true,
        getCertificate: ({ socket }: { socket: TLSSocket }) => socket.getPeerX509Certificate()?.toString(),
      },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          ...{ scope: 'customer', audience: 'shop', accessTokenTTL: 600 },
          accessTokenFormat: resource.slice('urn:shop:'.length),
          jwt: { sign: { alg } },
        }),
      },
    },
  };
}

/** Keeps the provider's data over a rotation of its keys. */
function memoryAdapter() {
  const known = new Map<string, object>();
  return class {
    readonly #kind: string;
    constructor(kind: string) {
      this.#kind = kind;
    }
    async upsert(id: string, payload: object) {
      known.set(`${this.#kind} ${id}`, payload);
    }
    async find(id: string) {
      return known.get(`${this.#kind} ${id}`);
    }
    async destroy(id: string) {
      known.delete(`${this.#kind} ${id}`);
    }
    async findByUid() {}
    async findByUserCode() {}
    async consume() {}
    async revokeByGrantId() {}
  };
}
