import http, { type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type AdminServer, createAdminServer } from '../../src/admin/admin-server.ts';
import { type Decision, DecisionLog } from '../../src/admin/decision-log.ts';
import { createDecisionsEndpoint, type DecisionsOptions } from '../../src/admin/decisions.ts';
import { exchangeRecord } from './exchange-records.ts';

describe('/api/decisions', () => {
  let server: AdminServer | undefined;
  const responses: IncomingMessage[] = [];
  afterEach(async () => {
    for (const response of responses.splice(0)) response.destroy();
    await server?.close();
  });

  const start = async (log: DecisionLog, options: Partial<DecisionsOptions> = {}) => {
    server = createAdminServer({
      host: '127.0.0.1',
      port: 0,
      hosts: [],
      readiness: () => ({ ready: true, reasons: [] }),
      metrics: async () => ({ contentType: '', body: '' }),
      endpoints: [createDecisionsEndpoint({ log, ...options })],
    });
    return (await server.listen()).port;
  };
  const open = (port: number, query = '') =>
    new Promise<IncomingMessage>((resolve, reject) => {
      http
        .get({ port, host: '127.0.0.1', path: `/api/decisions${query}`, agent: false }, (response) => {
          response.on('error', () => {});
          responses.push(response);
          resolve(response);
        })
        .once('error', reject);
    });
  /** Events until `isEnough`. */
  const follow = async (response: IncomingMessage, isEnough: (all: readonly Told[]) => boolean) => {
    const told: Told[] = [];
    let rest = '';
    for await (const chunk of response.iterator({ destroyOnReturn: false })) {
      const events = (rest + chunk).split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const [, name, data] = /event: (\w+)\ndata: ([^\n]*)$/.exec(event) ?? [];
        if (name === 'decision') told.push(JSON.parse(data ?? ''));
        if (name === 'skipped') told.push(Number(data));
      }
      if (isEnough(told)) return told;
    }
    return told;
  };
  type Told = Decision | number;
  const seqs = (told: readonly Told[]) => told.flatMap((one) => (typeof one === 'number' ? [] : one.seq));

  it('sends past decisions, then new ones, in events that no line break can forge', async () => {
    const log = new DecisionLog();
    log.note(exchangeRecord({ path: '/before' }), 1);
    const response = await open(await start(log));
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(seqs(await follow(response, (told) => told.length > 0))).toEqual([1]);
    const path = '/a\n\nevent: decision\ndata: {}\r\u2028';
    log.note(
      exchangeRecord({ path, decision: 'refused', rejection: 'access-token-missing', reason: 'missing' }),
      2,
    );
    const [decision] = await follow(response, (told) => told.length > 0);
    expect(decision).toMatchObject({ seq: 2, path, rejection: 'access-token-missing', reason: 'missing' });
  });

  it.each([
    ['', [1, 2, 3]],
    ['?after=2', [3]],
    ['?after=0', [1, 2, 3]],
    ['?after=9999', [1, 2, 3]],
  ])('goes on with %j', async (query, expected) => {
    const log = new DecisionLog();
    for (let i = 0; i < 3; i++) log.note(exchangeRecord(), i);
    const response = await open(await start(log), query);
    expect(seqs(await follow(response, (told) => told.length >= expected.length))).toEqual(expected);
  });

  it.each(['?after=x', '?other=1&after=1', '?after=1&after=2'])('refuses %j', async (query) => {
    const response = await open(await start(new DecisionLog()), query);
    expect(response.statusCode).toBe(400);
    response.destroy();
  });

  it('gives no more than it promises, refusals first, and counts the rest', async () => {
    const log = new DecisionLog();
    const response = await open(await start(log, { maxPerSecond: 8 }));
    for (let i = 1; i <= 300; i++) {
      log.note(
        i % 50 === 0 ? exchangeRecord({ decision: 'refused', rejection: 'bad-request' }) : exchangeRecord(),
        i,
      );
    }
    const told = await follow(response, (all) => all.some((one) => typeof one === 'number'));
    const skipped = told.filter((one) => typeof one === 'number').reduce((a, b) => a + b, 0);
    const decisions = told.filter((one) => typeof one !== 'number');
    expect(decisions.length + skipped).toBe(300);
    expect(decisions.length).toBeLessThanOrEqual(16);
    expect(decisions.filter(({ decision }) => decision === 'refused').map(({ seq }) => seq)).toEqual([
      50, 100, 150, 200, 250, 300,
    ]);
  });

  it('takes no more consoles than it promises, and a new one when another left', async () => {
    const port = await start(new DecisionLog(), { maxConsoles: 2 });
    const first = await open(port);
    const second = await open(port);
    const third = await open(port);
    expect([first.statusCode, second.statusCode, third.statusCode]).toEqual([200, 200, 503]);
    expect(third.headers['retry-after']).toBe('10');
    first.destroy();
    for (;;) {
      const next = await open(port);
      if (next.statusCode === 200) break;
      next.destroy();
      await sleep(20);
    }
  });

  it('gives nothing more to a console that takes nothing, and lets it go in the end', async () => {
    const log = new DecisionLog();
    const port = await start(log, { maxPerSecond: 10_000, maxConsoles: 1, stallTimeoutMs: 500 });
    const stalled = connect(port, '127.0.0.1').pause();
    stalled.on('error', () => {});
    stalled.write('GET /api/decisions HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const path = `/${'x'.repeat(8_000)}`;
    let noted = 0;
    const isFree = async () => {
      const other = await open(port);
      other.destroy();
      return other.statusCode === 200;
    };
    while (await isFree()) await sleep(20);
    do {
      for (let i = 0; i < 400; i++) log.note(exchangeRecord({ path }), ++noted);
      await sleep(50);
    } while (!(await isFree()));
    expect(stalled.bytesRead).toBeLessThan(noted * 8_000);
    stalled.destroy();
  });
});
