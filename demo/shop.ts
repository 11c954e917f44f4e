import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createState, resetState } from './data/seeds.ts';
import { createListener } from './http/listener.ts';
import type { Shop } from './http/resource.ts';
import { Received } from './received.ts';
import { createSettings, type ShopSettings } from './settings.ts';
import { generateSigningKey, RefreshTokens, SigningKeys, subjectOf, type TokenClaims } from './tokens.ts';

export type ShopOptions = Partial<ShopSettings> & {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 takes a free port. Default 0. */
  readonly port?: number;
};

export type DemoShop = Pick<Shop, 'keys' | 'received' | 'settings'> & {
  readonly url: string;
  readonly port: number;
  readonly jwksUrl: string;
  /** A signed access token of the default customer; `claims` replace or, as `undefined`, remove its own. */
  readonly issueToken: (claims?: TokenClaims) => Promise<string>;
  /** A signed access token of one customer. */
  readonly issueTokenFor: (customerReference: string, claims?: TokenClaims) => Promise<string>;
  /** Back to the seeds; tokens, settings and what was received stay. */
  reset(): void;
  close(): Promise<void>;
};

const loopback = '127.0.0.1';

/**
 * Starts an honest small shop: the contract's resources, computed from seeded data in memory. It enforces nothing that
 * shopward is there to enforce: no token is required and none is verified (no readable token: the caller is the default
 * customer), `If-Match` is ignored, refresh tokens can be used again, and method override and path aliases are open.
 */
export async function startDemoShop(options: ShopOptions = {}): Promise<DemoShop> {
  const { host = loopback, port = 0, ...change } = options;
  const settings = createSettings(change);
  const keys = new SigningKeys(await generateSigningKey());
  const received = new Received();
  const stopping = new AbortController();
  const state = createState();
  const refreshTokens = new RefreshTokens();
  const shop: Shop = { state, settings, keys, received, refreshTokens, stopping: stopping.signal };
  const server = createListener(shop);
  const close = async () => {
    stopping.abort();
    await stop(server);
  };
  const ownPort = await listen(server, host, port).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  // A client can use no wildcard.
  const url = `http://${host === '0.0.0.0' ? loopback : host}:${ownPort}`;
  settings.domain ||= url;
  const issueToken = (claims: TokenClaims = {}) => keys.issue(claims);
  return {
    ...{ keys, received, settings, url, issueToken, close },
    port: ownPort,
    jwksUrl: `${url}/jwks.json`,
    issueTokenFor: (reference, claims) =>
      issueToken({ sub: subjectOf({ reference, idCompanyUser: null }), ...claims }),
    reset: () => resetState(state),
  };
}

function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  return closed;
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await once(server.listen(port, host), 'listening');
  return (server.address() as AddressInfo).port;
}
