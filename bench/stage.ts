import { sign } from 'node:crypto';
import * as contestants from './contestants.ts';
import { startRedis } from './contestants.ts';
import type { LoadRequest } from './load.ts';

/**
 * Shared by several cases: the upstream, the contestants that forward any request, tokens, Redis. Each is started at its
 * first use.
 */
export class Stage {
  readonly upstream: string;
  readonly #shared = new Map<string, Promise<unknown>>();

  constructor(upstream: string) {
    this.upstream = upstream;
  }

  shopward(): Promise<contestants.Contestant> {
    return this.#once('shopward', () => contestants.startShopward('shopward', this.upstream));
  }

  /** shopward as by default: it logs a line of JSON for every request; no other contestant does. */
  shopwardWithAccessLog(): Promise<contestants.Contestant> {
    const name = 'shopward, access log on';
    return this.#once(name, () => contestants.startShopward(name, this.upstream, { logLevel: 'info' }));
  }

  httpProxy3(kind: 'bare' | 'tuned' | 'defaults'): Promise<contestants.Contestant> {
    const name = kind === 'defaults' ? 'http-proxy-3 by default' : `${kind} http-proxy-3`;
    return this.#once(name, () => contestants.startNode(name, 'http-proxy-3.ts', [this.upstream, kind]));
  }

  fastify(): Promise<contestants.Contestant> {
    const args = [this.upstream, contestants.publicKeyFile];
    return this.#once('fastify', () =>
      contestants.startNode('@fastify/http-proxy', 'fastify-http-proxy.ts', args),
    );
  }

  nginx(): Promise<contestants.Contestant | undefined> {
    return this.#once('nginx', () => contestants.startNginxProxy(this.upstream));
  }

  haproxy(): Promise<contestants.Contestant | undefined> {
    return this.#once('haproxy', () => contestants.startHaproxy(this.upstream));
  }

  redis(): Promise<{ readonly url: string } | undefined> {
    return this.#once('redis', startRedis);
  }

  async everybody(): Promise<(contestants.Contestant | undefined)[]> {
    const { upstream } = this;
    const node = (name: string, file: string) =>
      this.#once(name, () => contestants.startNode(name, file, [upstream]));
    return [
      await this.shopward(),
      await this.shopwardWithAccessLog(),
      await this.httpProxy3('bare'),
      await this.httpProxy3('tuned'),
      await this.fastify(),
      await node('node:http relay', 'node-relay.ts'),
      await node('undici relay', 'undici-relay.ts'),
      await this.nginx(),
      await this.haproxy(),
    ];
  }

  #once<T>(name: string, start: () => Promise<T>): Promise<T> {
    const known = this.#shared.get(name) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const started = start();
    this.#shared.set(name, started);
    return started;
  }
}

export function get(path: string, fields: Record<string, string> = {}): LoadRequest {
  return { method: 'GET', path, fields: { Accept: 'application/vnd.api+json', ...fields }, status: 200 };
}

/** Valid tokens of as many different users. */
export function bearers(count: number): Promise<string[]> {
  const header = encode({ alg: 'RS256', typ: 'JWT' });
  const iat = Math.floor(Date.now() / 1000);
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const signed = `${header}.${encode({ sub: `DE--${i}`, scopes: ['customer'], iat, exp: iat + 8 * 3600 })}`;
      return `Bearer ${signed}.${await signature(signed)}`;
    }),
  );
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** Signs in Node's thread pool. */
function signature(text: string): Promise<string> {
  return new Promise((resolve, reject) =>
    sign('sha256', Buffer.from(text), contestants.keys.privateKey, (fault, bytes) =>
      fault ? reject(fault) : resolve(bytes.toString('base64url')),
    ),
  );
}
