import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { FilterDefinition, FilterDependencies } from '../../../src/app/filter-definition.ts';
import { createMetadata } from '../../../src/app/filters.ts';
import { rateLimitsDefinition } from '../../../src/app/rate-limits.ts';
import { urlResolverDefinition } from '../../../src/app/url-resolver.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { isRejection, type Rejection } from '../../../src/http/rejection.ts';
import type { Filter, Matcher } from '../../../src/proxy/filter.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import type { UpstreamFault, UpstreamHandler, UpstreamRequest } from '../../../src/upstream/port.ts';
import { accepted, sampleHead } from '../http/sample-request.ts';

function configOf(more: object = {}): Config {
  const { config } = validateConfig({
    upstream: { url: 'http://glue.internal:8080' },
    auth: { keys: { jwks: 'https://shop.example/keys' } },
    ...more,
  }) as { config: Config };
  return config;
}

/** A feature as the application makes it, with what it logs and counts. */
function create<M extends Matcher, F extends Filter>(
  definition: FilterDefinition<M, F>,
  more: object = {},
  dependencies: Partial<FilterDependencies> = {},
) {
  const config = configOf(more);
  const matcher = definition.compile(config);
  if (matcher === undefined) throw new Error('it is switched off');
  const said: object[] = [];
  const say = (fields: object) => void said.push(fields);
  const metrics = createMetrics();
  const filter = definition.create(matcher, {
    ...{ config, redis: undefined, metrics, upstreamHost: 'glue.internal:8080' },
    log: { info: say, warn: say, error: say, debug: say },
    ...dependencies,
  } as FilterDependencies);
  onTestFinished(() => void filter.close?.());
  return { filter, said, metrics };
}

it('issuers are named in the metadata where they are reached over TLS', () => {
  const keys = { jwks: 'https://shop.example/keys' };
  const authorizationServers = (auth: object) => {
    const metadata = createMetadata(configOf({ auth, publicUrl: 'https://api.shop.example' }), {
      inForce: { terms: [] },
    } as never);
    const answer = metadata.answer(accepted(sampleHead({ url: '/.well-known/oauth-protected-resource' })));
    return JSON.parse(String((answer as { body: string | Buffer }).body)).authorization_servers;
  };
  expect(authorizationServers({ keys, issuer: 'https://login.example' })).toEqual(['https://login.example']);
  expect(authorizationServers({ keys, issuer: 'http://login.example' })).toBeUndefined();
  expect(authorizationServers({ keys })).toBeUndefined();
});

describe('look-ups of the resolver', () => {
  type Play = (handler: UpstreamHandler, request: UpstreamRequest) => void;

  /** What the shop is asked for one URL, and what becomes of it. */
  async function lookUp(play: Play, more: object = {}) {
    const asked: UpstreamRequest[] = [];
    let aborts = 0;
    const client = {
      ...{ inFlight: 0, queued: 0, close: async () => {} },
      dispatch(request: UpstreamRequest, handler: UpstreamHandler) {
        asked.push(request);
        queueMicrotask(() => play(handler, request));
        return {
          resume() {},
          abort() {
            aborts += 1;
            handler.onFault({ kind: 'aborted', answerBegun: true } as never);
          },
        };
      },
    };
    const { filter, said } = create(
      urlResolverDefinition,
      { urlResolver: {}, ...more },
      { createQuestionClient: () => client },
    );
    const url = '/url-resolver?url=/en/acer';
    const request = accepted(sampleHead({ url }));
    const answer = await filter.run(true, { request } as never);
    const failed = said.find((fields) => 'fault' in fields);
    return {
      ...{ asked, aborts, failed, filter },
      refusal: isRejection(answer) ? (answer as Rejection).rejection : undefined,
    };
  }

  const notFound = Buffer.from('{"errors":[{"code":"2802","status":404,"detail":"x"}]}');
  const answerWith: (status: number, body: Buffer) => Play = (status, body) => (handler) => {
    handler.onHead(status, '', ['Content-Type', 'application/vnd.api+json']);
    for (let at = 0; at < body.length; at += 20_000) handler.onData(body.subarray(at, at + 20_000));
    handler.onEnd();
  };

  it.each<[string, Play, string, number]>([
    [
      'more than 64 KiB are not read',
      (handler) => {
        handler.onHead(200, '', []);
        for (let bytes = 0; bytes < 80_000; bytes += 20_000) handler.onData(Buffer.alloc(20_000));
      },
      'unrecognized',
      1,
    ],
    [
      'a connection that takes too long is a time-out',
      (handler) => handler.onFault({ kind: 'connect-timeout' } as UpstreamFault),
      'timeout',
      0,
    ],
    [
      'a queue that is full',
      (handler) => handler.onFault({ kind: 'overloaded' } as UpstreamFault),
      'overloaded',
      0,
    ],
    ['what is not HTTP', (handler) => handler.onFault({ kind: 'malformed' } as UpstreamFault), 'invalid', 0],
    [
      'an answer that was cut',
      (handler) => handler.onFault({ kind: 'reset', answerBegun: true } as UpstreamFault),
      'invalid',
      0,
    ],
    [
      'a connection that was cut before',
      (handler) => handler.onFault({ kind: 'reset', answerBegun: false } as UpstreamFault),
      'unreachable',
      0,
    ],
    ['no server', (handler) => handler.onFault({ kind: 'unreachable' } as UpstreamFault), 'unreachable', 0],
  ])('%s', async (_, play, fault, aborted) => {
    const { failed, aborts } = await lookUp(play);
    expect([(failed as { fault: string } | undefined)?.fault, aborts]).toEqual([fault, aborted]);
  });

  it('exactly 64 KiB are read', async () => {
    const { aborts } = await lookUp(answerWith(404, Buffer.alloc(65_536, ' ')));
    expect(aborts).toBe(0);
  });

  it('end at their time, and set no clock beyond their end', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const pending = lookUp(() => {}, {
      upstream: { url: 'http://glue.internal:8080', responseTimeout: '9s' },
    });
    await vi.advanceTimersByTimeAsync(8_999);
    let isOver = false;
    void pending.then(() => (isOver = true));
    await vi.advanceTimersByTimeAsync(0);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await pending).toMatchObject({ aborts: 1, failed: { fault: 'timeout' } });
    const before = vi.getTimerCount();
    await lookUp(answerWith(404, notFound));
    await lookUp((handler) => handler.onFault({ kind: 'unreachable' } as UpstreamFault));
    expect(vi.getTimerCount()).toBe(before);
  });

  it('are counted, and each counter says what it counts', async () => {
    const { filter } = await lookUp(answerWith(404, notFound));
    const values = Object.fromEntries((filter.metrics ?? []).map(({ name, value }) => [name, value()]));
    expect(values).toMatchObject({
      ...{ shopward_url_misses: 1, shopward_url_questions_asked: 1, shopward_url_failures: 0 },
      shopward_url_file_rows: 0,
      ...{ shopward_url_file_last_reload_success: 1, shopward_url_hits: 0 },
    });
    expect(filter.health?.()).toMatchObject({ status: 'ok', reasons: [], text: 'it answers' });
  });
});

describe('how a feature says that it is', () => {
  it('rate limits: by what was counted, and for ten seconds that the store does not count', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const rows = [{ method: 'GET', path: '/carts', requests: 1, per: '1m', mode: 'enforce' }];
    const redis = { redis: { eval: async () => Promise.reject(new Error('away')) }, prefix: 'p' };
    const one = create(rateLimitsDefinition, { rateLimits: { rows } });
    expect(one.filter.health?.()).toMatchObject({ status: 'ok', text: 'nothing seen yet' });
    one.metrics.countEvent('rate-limits', 'limited');
    expect(one.filter.health?.()).toMatchObject({
      ...{ status: 'ok', text: 'requests are counted by client' },
      details: [{ label: 'limited', value: 1, combine: 'sum' }],
    });
    const away = create(rateLimitsDefinition, { rateLimits: { rows } }, { redis: redis as never });
    const request = accepted(sampleHead({ url: '/carts' }));
    const match = away.filter.match(request);
    await away.filter.run(match as never, { request } as never);
    const text = 'rate limits: the store does not count, every request passes';
    expect(away.filter.health?.()).toMatchObject({ status: 'degraded', reasons: [text], text });
    vi.advanceTimersByTime(9_999);
    expect(away.filter.health?.().reasons).toEqual([text]);
    vi.advanceTimersByTime(1);
    expect(away.filter.health?.().reasons).toEqual([]);
  });
});
