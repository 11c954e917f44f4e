import { createServer } from 'node:http';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createAccessLog, type ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { eventually } from '../../harness/eventually.ts';
import { listen } from '../../harness/listen.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

const forwarded: ExchangeRecord = {
  requestId: 'id',
  method: 'GET',
  route: '*',
  path: '/x',
  decision: 'forwarded',
  status: 200,
  durationMs: 1,
  bytesIn: 0,
  bytesOut: 0,
  clientAddress: '127.0.0.1',
};
const refused: ExchangeRecord = {
  ...forwarded,
  decision: 'refused',
  status: 400,
  rejection: 'bad-request-target',
};

function open(maxRefusalLines: number) {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return { lines, write: createAccessLog(pino(stream), maxRefusalLines, 50) };
}

it('logs every forwarded request, but only the first refusals of a flood and their number', async () => {
  const { lines, write } = open(3);
  for (let i = 0; i < 10; i++) {
    write(forwarded);
    write(refused);
  }
  write({ ...refused, rejection: 'bad-host' });
  const of = (rejection: string | undefined) =>
    lines.filter((line) => line.event === 'request' && line.rejection === rejection).length;
  expect([of(undefined), of('bad-request-target'), of('bad-host')]).toEqual([10, 3, 1]);
  const sum = await eventually('the sum', () => lines.find(({ event }) => event === 'requests-not-logged'));
  expect(sum).toMatchObject({ rejection: 'bad-request-target', count: 7 });
  write(refused);
  expect(of('bad-request-target')).toBe(4);
});

it('a line has user agent, octets and times with one decimal; a failure of the shop is no refusal', async () => {
  const shop = createServer((request, response) => {
    request.resume();
    if (request.url === '/broken') request.socket.destroy();
    else response.end('x'.repeat(5_000));
  });
  const { url, close } = await listen(shop);
  const shopward = await startShopwardHere({
    upstream: url,
    rows: ['GET /secret'],
    config: { rejections: { 'upstream-unreachable': { status: 503 } } },
  });
  onTestFinished(async () => {
    await shopward.stop();
    await close();
  });
  const token = `${'e'.repeat(20)}.${'f'.repeat(20)}.${'g'.repeat(20)}`;
  const ask = (path: string, userAgent: string, body?: string) =>
    fetch(`${shopward.url}${path}`, {
      headers: { 'User-Agent': userAgent },
      ...(body !== undefined && { method: 'POST', body }),
    }).then((response) => response.arrayBuffer());
  await ask('/open', 'Mozilla/5.0 (X11)', 'y'.repeat(3_000));
  await ask('/open', `agent ${token} ${'z'.repeat(200)}`);
  await ask('/open', 'z'.repeat(9_000));
  await ask('/broken', '');
  await ask('/secret', '');
  const requests = () => shopward.log().filter(({ event }) => event === 'request');
  await expect.poll(() => requests().length).toBe(5);
  const lines = requests();
  expect(lines.map(({ decision, status }) => [decision, status])).toEqual([
    ...Array(3).fill(['forwarded', 200]),
    ['failed', 503],
    ['refused', 401],
  ]);
  expect(lines.map(({ userAgent }) => userAgent)).toEqual([
    'Mozilla/5.0 (X11)',
    `agent … ${'z'.repeat(92)}`,
    'z'.repeat(100),
    '',
    '',
  ]);
  const sent = lines.map(({ bytesOut }) => bytesOut);
  expect(sent.slice(0, 3)).toEqual([5_000, 5_000, 5_000]);
  // A refusal has a body, too.
  expect(Math.min(...(sent as number[]))).toBeGreaterThan(50);
  const [first = 0, second = 0, third = 0] = lines.map(({ bytesIn }) => bytesIn as number);
  // Head and body, of this exchange alone: fetch keeps the connection.
  for (const [octets, least] of [
    [first, 3_000],
    [second, 200],
    [third, 9_000],
  ] as const) {
    expect(octets).toBeGreaterThan(least);
    expect(octets).toBeLessThan(least + 500);
  }
  for (const { durationMs, upstreamMs } of lines as { durationMs: number; upstreamMs?: number }[]) {
    for (const ms of [durationMs, upstreamMs ?? 0]) expect(String(ms)).toMatch(/^\d+(?:\.\d)?$/);
  }
});
