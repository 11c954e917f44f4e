import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { createAuthenticate } from '../../../src/access/authenticate.ts';
import { createSubjectReader } from '../../../src/access/claim-paths.ts';
import { JwksKeySource } from '../../../src/access/jwks-key-source.ts';
import { TokenVerifier } from '../../../src/access/token-verifier.ts';
import { refreshTokens as settings } from '../../../src/config/sections/refresh-tokens.ts';
import { buildRequestRules, canonicaliseRequest } from '../../../src/http/canonicalise-request.ts';
import { buildRejections, isAnswer, isRejection } from '../../../src/http/rejection.ts';
import { RejectionBodies } from '../../../src/http/rejection-bodies.ts';
import { writeRejection } from '../../../src/http/write-response.ts';
import { createAccessTokenSubject, type RefreshTokensOptions } from '../../../src/refresh-tokens/context.ts';
import {
  createRefreshTokens,
  createTokenMatcher,
  type RefreshTokens,
} from '../../../src/refresh-tokens/filter.ts';
import type { TokenStore } from '../../../src/refresh-tokens/token-store.ts';
import { InFlight } from '../../../src/server/in-flight.ts';
import { createUpstreamClient } from '../../../src/upstream/client.ts';
import type { ForwardResult } from '../../../src/upstream/forward.ts';
import { createForwarder } from '../../../src/upstream/forwarder.ts';
import { readWholeBody } from '../../../src/upstream/request-body.ts';
import { runFilter, wishOf } from '../../harness/run-filter.ts';

export interface TokenFront {
  readonly port: number;
  readonly filter: RefreshTokens & {
    stats(): { readonly events: Readonly<Record<string, number>>; readonly delayedWrites: number };
  };
  close(): Promise<void>;
}

const shopSettings = settings.parse(undefined);
export const shopEndpoints = shopSettings === false ? [] : shopSettings.endpoints;
export const defaultLifetimeMs = 2_628_000_000;

/** Only the steps of the pipeline for token endpoints: canonical request, identity, filter, forwarder. */
export async function startTokenFront(
  upstream: { readonly port: number; readonly jwksUrl: string },
  store: TokenStore,
  options: Partial<RefreshTokensOptions> & { readonly isObserved?: boolean } = {},
): Promise<TokenFront> {
  const rules = buildRequestRules({
    upstreamHost: `127.0.0.1:${upstream.port}`,
    encodedSlash: [],
    requestBodyBytes: 2_097_152,
  });
  const keySource = new JwksKeySource({ url: upstream.jwksUrl, algorithms: ['RS256'], now: Date.now });
  await keySource.refresh();
  const verifier = new TokenVerifier({
    algorithms: ['RS256'],
    keySource,
    subject: 'sub.customer_reference',
    clockToleranceMs: 5000,
    maxVerifying: 100,
    now: Date.now,
  });
  const authenticate = createAuthenticate({ verifier });
  const counts: Record<string, number> = {};
  const filter = createRefreshTokens(createTokenMatcher(shopEndpoints, { ignoredPrefixes: [] }), {
    store,
    subjectOf: createAccessTokenSubject(createSubjectReader('sub.customer_reference')),
    lifetimeMs: defaultLifetimeMs,
    answerWithinMs: 120_000,
    ...options,
    onEvent(event) {
      counts[event] = (counts[event] ?? 0) + 1;
      options.onEvent?.(event);
    },
  });
  const events = new Proxy(counts, { get: (all, name) => all[String(name)] ?? 0 });
  const forwarder = createForwarder({
    client: createUpstreamClient({
      upstream: { scheme: 'http', hostname: '127.0.0.1', port: upstream.port },
      connectTimeoutMs: 30_000,
      connections: 64,
      queueLimit: 1000,
      queueTimeoutMs: 60_000,
    }),
    streamingBodies: new InFlight({ limit: 32, sharePercent: 100 }),
    responseTimeoutMs: 60_000,
    bodyLimitBytes: 2_097_152,
    bodyTimeoutMs: 60_000,
    writeStallTimeoutMs: 60_000,
  });
  const rejections = new RejectionBodies(buildRejections());

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = canonicaliseRequest(
      incoming,
      { address: '127.0.0.1', isTls: false, isTrusted: false },
      rules,
    );
    const refuse = (rejection: Parameters<typeof writeRejection>[2]) =>
      void writeRejection(incoming, response, rejection, rejections);
    if (isRejection(request)) return refuse(request);
    const wish = wishOf(filter, request);
    let identity: { readonly subject: string } | undefined;
    if (request.method === 'DELETE') {
      const verdict = await authenticate(request, { scopes: [] });
      if (isRejection(verdict)) return refuse(verdict);
      identity = verdict === 'unjudged' ? undefined : verdict.identity;
    }
    const body =
      wish === 'whole-body'
        ? await readWholeBody(incoming, request.body, { bodyLimitBytes: 2_097_152, bodyTimeoutMs: 60_000 })
        : undefined;
    if (isRejection(body)) return refuse(body);
    const hooks = await runFilter(filter, request, identity, body, options.isObserved);
    if (isRejection(hooks)) return refuse(hooks);
    if (isAnswer(hooks)) {
      response.writeHead(hooks.status, [...hooks.fields]).end(hooks.body ?? undefined);
      return;
    }
    const conclude = (result: ForwardResult) => {
      if (result.rejection !== undefined) refuse(result.rejection);
    };
    await forwarder.forward({ request, incoming, response, body, hooks }, { conclude });
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((fault) => response.writeHead(500).end(String(fault)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    filter: Object.assign(filter, {
      stats: () => ({
        events: events as Readonly<Record<string, number>>,
        delayedWrites: filter.delayedWrites(),
      }),
    }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await filter.close();
      await forwarder.close();
      verifier.close();
      keySource.close();
    },
  };
}

/** A client of the token endpoints. */
export function tokenClient(port: number) {
  const send = async (
    method: string,
    path: string,
    fields: Record<string, string>,
    body?: string | Buffer,
  ) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { Accept: 'application/vnd.api+json', ...fields },
      ...(body !== undefined && { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
    const json: any = text.startsWith('{') ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  };
  const jsonApi = { 'Content-Type': 'application/vnd.api+json' };
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return {
    port,
    send,
    async signIn(username = 'sonia@shop.example'): Promise<{ accessToken: string; refreshToken: string }> {
      const body = { data: { type: 'access-tokens', attributes: { username, password: 'change123' } } };
      const { status, json, text } = await send('POST', '/access-tokens', jsonApi, JSON.stringify(body));
      if (status !== 201) throw new Error(`sign-in: ${status} ${text}`);
      return json.data.attributes;
    },
    refresh: (refreshToken: string) => send('POST', '/refresh-tokens', jsonApi, exchangeBody(refreshToken)),
    exchangeForm: (refreshToken: string) =>
      send('POST', '/token', form, `grant_type=refresh_token&refresh_token=${refreshToken}`),
    revoke: (accessToken: string, which: string) =>
      send('DELETE', `/refresh-tokens/${which}`, { Authorization: `Bearer ${accessToken}` }),
  };
}

export function exchangeBody(refreshToken: string): string {
  return JSON.stringify({ data: { type: 'refresh-tokens', attributes: { refreshToken } } });
}

/** Number of requests to the shop with this method and a path that begins with `path`. */
export function asked({ received }: DemoShop, method: string, path: string): number {
  return received.requests.filter((each) => each.method === method && each.target.startsWith(path)).length;
}

export { startDemoShop };
