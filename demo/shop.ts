import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createControlServer } from './control.ts';
import { createListener } from './http/listener.ts';
import { Received } from './received.ts';
import { createSettings, type ShopOptions, type ShopSettings } from './settings.ts';
import { createState, resetState } from './state.ts';
import {
  createTokenIssuer,
  type IssueToken,
  RefreshTokens,
  SigningKeys,
  subjectOf,
  type TokenClaims,
} from './tokens.ts';

export type DemoShop = {
  readonly url: string;
  readonly port: number;
  readonly jwksUrl: string;
  /** Address of the control server, `null` when it was left out. */
  readonly controlUrl: string | null;
  /** A signed access token of the default customer; `claims` replace or, as `undefined`, remove its own. */
  readonly issueToken: IssueToken;
  /** A signed access token of one customer. */
  readonly issueTokenFor: (customerReference: string, claims?: TokenClaims) => Promise<string>;
  readonly keys: SigningKeys;
  readonly received: Received;
  /** May be changed at any time. */
  readonly settings: ShopSettings;
  /** Back to the seeds; tokens, settings and what was received stay. */
  reset(): void;
  close(): Promise<void>;
};

/**
 * Starts an honest small shop: the contract's resources, computed from seeded data in memory. It enforces nothing that
 * shopward is there to enforce: no token is required and none is verified (no readable token: the caller is the default
 * customer), `If-Match` is ignored, refresh tokens can be used again, and method override and path aliases are open.
 */
export async function startDemoShop(options: ShopOptions = {}): Promise<DemoShop> {
  const settings = createSettings(options);
  const state = createState();
  const keys = await SigningKeys.create();
  const issueToken = createTokenIssuer(keys, settings);
  const refreshTokens = new RefreshTokens(options.refreshTokenLifetimeSeconds ?? 2_628_000);
  const received = new Received(options.rememberedRequests ?? 10_000);
  const stopping = new AbortController();
  const shop = { state, settings, stopping: stopping.signal, issueToken, refreshTokens };
  const server = createListener(shop, keys, received);
  const control = createControlServer({ settings, state, received, keys });
  const host = options.host ?? '127.0.0.1';
  const close = async () => {
    stopping.abort();
    await Promise.all([server, control].map(stop));
  };
  const port = await listen(server, host, options.port ?? 0);
  const url = `http://${addressOf(host)}:${port}`;
  if (settings.domain === '') settings.domain = url;
  const { controlPort = 0 } = options;
  const controlUrl =
    controlPort === false
      ? null
      : await listen(control, '127.0.0.1', controlPort).then(
          (own) => `http://127.0.0.1:${own}`,
          async (error: unknown) => {
            await close();
            throw error;
          },
        );
  return {
    ...{ url, port, jwksUrl: `${url}/jwks.json`, controlUrl, issueToken },
    issueTokenFor: (reference, claims = {}) =>
      issueToken({ sub: subjectOf({ reference, idCompanyUser: null }), ...claims }),
    ...{ keys, received, settings, reset: () => resetState(state), close },
  };
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** An address that a client can use: a wildcard is no destination. */
function addressOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
