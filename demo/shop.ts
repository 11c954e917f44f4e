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
  /** A signed access token of the default customer. `claims` replace its own; `undefined` removes one. */
  readonly issueToken: (claims?: TokenClaims) => Promise<string>;
  /** A signed access token of one customer. */
  readonly issueTokenFor: (customerReference: string, claims?: TokenClaims) => Promise<string>;
  /** Restores the seeds; tokens, settings and received requests stay. */
  reset(): void;
  close(): Promise<void>;
};

const loopback = '127.0.0.1';

/**
 * Starts a small shop: the contract's resources, computed from seeded data in memory. It lacks the protection that shopward
 * adds: it requires and verifies no token (without a readable token the caller is the default customer), ignores
 * `If-Match`, accepts used refresh tokens, and allows method override and path aliases.
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
  // A client cannot connect to a wildcard address.
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
