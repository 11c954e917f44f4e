import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import type { Check } from '../../../src/cli/verify/verification.ts';
import { runVerify, type VerifyChoice } from '../../../src/cli/verify.ts';
import { listen } from '../../harness/listen.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { testPair } from '../../harness/tls-fixture.ts';
import { runCommand } from './command-run.ts';

export interface Report {
  readonly code: number;
  readonly ok: boolean;
  readonly counts: { readonly ok: number; readonly failed: number; readonly skipped: number };
  readonly checks: readonly Check[];
}

/** The demo shop with the real proxy in front, for all tests of a file. */
export function openVerifyStage() {
  let shop: DemoShop;
  let shopward: RunningShopward;
  beforeAll(async () => {
    shop = await startDemoShop({ resolverLatencyMs: 0 });
    shopward = await startShopwardHere({ upstream: shop.url });
  });
  afterAll(async () => {
    await shopward.stop();
    await shop.close();
  });
  return {
    get shop() {
      return shop;
    },
    get shopward() {
      return shopward;
    },
    /** Runs `verify --json` with the configuration of the proxy. */
    async verify(url: string, options: VerifyChoice = {}, env: Record<string, string> = {}): Promise<Report> {
      const given = { config: shopward.configFile, json: true, ...options };
      const { code, out, err } = await runCommand((io) => runVerify(url, given, io), { env });
      expect(err).toEqual([]);
      return { code, ...JSON.parse(out.join('\n')) };
    },
    /** Requests that the shop received after its first `start` ones, without plain reads. */
    unsafeSince: (start: number) =>
      shop.received.requests
        .slice(start)
        .filter(({ method }) => method !== 'GET')
        .map(({ method, target }) => `${method} ${target}`),
  };
}

export function failures({ checks }: Report): string[] {
  return checks
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ area, name, got }) => `${area}: ${name}: ${got}`);
}

export function find({ checks }: Report, name: string | RegExp): Check | undefined {
  return checks.find((check) => (typeof name === 'string' ? check.name === name : name.test(check.name)));
}

type Relay = () => void;
interface FrontOptions {
  readonly to: string;
  readonly isTls?: boolean;
  /** Answers itself, or calls `relay` to let the request pass. */
  readonly handle?: (request: IncomingMessage, response: ServerResponse, relay: Relay) => void;
  /** Changes the fields of a relayed answer. */
  readonly alter?: (fields: http.IncomingHttpHeaders, request: IncomingMessage) => void;
}

/** Starts a server in front of a proxy, such as a balancer, a TLS terminator or a compressor. */
export async function startFront({ to, isTls = false, handle, alter }: FrontOptions): Promise<string> {
  const origin = new URL(to);
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const relay: Relay = () => {
      const { method, url, headers } = request;
      const onward = http.request(
        { host: origin.hostname, port: origin.port, method, path: url, headers },
        (answer) => {
          alter?.(answer.headers, request);
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    if (handle) handle(request, response, relay);
    else relay();
  };
  const server = isTls ? https.createServer(testPair, listener) : http.createServer(listener);
  const { port, close } = await listen(server);
  onTestFinished(close);
  return `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`;
}
