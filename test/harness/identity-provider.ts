import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import Provider from 'oidc-provider';
import * as openid from 'openid-client';
import type { Signer } from '../unit/access/signing.ts';
import { freePort } from './free-port.ts';

/** A real identity provider on loopback, and a real client of it. */
export interface IdentityProvider {
  readonly issuer: string;
  /** Configuration of its client. */
  readonly config: openid.Configuration;
  /**
   * Issues an access token by the client credentials grant; `format` selects the resource. `mtls`: a fetch with a
   * client certificate, to which the token is bound.
   */
  issue(format: 'jwt' | 'opaque', DPoP?: openid.DPoPHandle, mtls?: openid.CustomFetch): Promise<string>;
  revoke(token: string): Promise<void>;
  /** How often a path was requested. */
  hits(path: string): number;
  /** Signs with another key from now on, under the same issuer. */
  rotate(signer: Signer): void;
  goDown(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

export const client = { id: 'shop:ward', secret: 'a secret + of the client' };

/** `tls`: certificate and key of a second port, at which tokens are bound to the client's certificate. */
export async function startIdentityProvider(
  signer: Signer,
  tls?: { readonly cert: string; readonly key: string },
): Promise<IdentityProvider> {
  const counts = new Map<string, number>();
  let handle: ReturnType<Provider['callback']> = (_, response) => response.end();
  let server: Server;
  const listen = async (port: number) => {
    server = createServer((request, response) => {
      const path = request.url ?? '';
      counts.set(path, (counts.get(path) ?? 0) + 1);
      handle(request, response);
    }).listen(port, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    return (server.address() as AddressInfo).port;
  };
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  // A port that no other process gets while the provider is down.
  const port = await listen(await freePort());
  const issuer = `http://127.0.0.1:${port}`;
  const store = memoryAdapter();
  const secure =
    tls &&
    createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false }, (...both) =>
      handle(...both),
    );
  if (secure !== undefined) await once(secure.listen(0, '127.0.0.1'), 'listening');
  const mtls = secure && `https://127.0.0.1:${(secure.address() as AddressInfo).port}/token`;
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
    async issue(format, DPoP, show) {
      if (show !== undefined) config[openid.customFetch] = show;
      const parameters = { scope: 'customer', resource: `urn:shop:${format}` };
      return (await openid.clientCredentialsGrant(config, parameters, DPoP && { DPoP })).access_token;
    },
    revoke: (token) => openid.tokenRevocation(config, token),
    hits: (path) => counts.get(path) ?? 0,
    rotate: use,
    goDown: close,
    comeBack: async () => void (await listen(port)),
    async close() {
      secure?.closeAllConnections();
      secure?.close();
      await close();
    },
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
