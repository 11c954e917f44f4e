import { expect, it } from 'vitest';
import { createAccessLog, createRedactPath, tokenWords } from '../../../src/telemetry/exchange-record.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const redactPath = createRedactPath(tokenWords(['/v1/sessions/{session}', '/logout']));

it.each([
  ['/carts/1', '/carts/1'],
  ['/refresh-tokens', '/refresh-tokens'],
  ['/refresh-tokens/mine', '/refresh-tokens/mine'],
  ['/refresh-tokens/s3cret', '/refresh-tokens/…'],
  ['/refresh-tokens//s3cret', '/refresh-tokens//…'],
  ['/x/REFRESH-TOKENS%3Bx/s3cret/', '/x/REFRESH-TOKENS%3Bx/…/'],
  ['/index.phprefresh-tokens/s3cret', '/index.phprefresh-tokens/…'],
  ['/refresh-tokens%2Fs3cret', '/…'],
  ['/v1/Sessions/s3cret', '/v1/Sessions/…'],
  [`/carts/${'x'.repeat(81)}/items`, '/carts/…/items'],
  ['/', '/'],
])('%s is logged as %s', (path, logged) => {
  expect(redactPath(path.slice(1).split('/'))).toBe(logged);
});

/** Maximum octets of one write to a pipe: if workers share the pipe, longer lines are mixed. */
const chunkBytes = 4096;

it.each([
  ['segments of 80 characters', 'x'.repeat(80)],
  ['segments that are left out', 'x'.repeat(81)],
  ['short segments', 'x'],
  ['empty segments', ''],
  ['escapes', '%C3%A4'],
])('a line with the longest path of %s is one write, and marks the cut', (_, segment) => {
  const path = `/${segment}`.repeat(8192 / (segment.length + 1));
  const after = `/refresh-tokens${'/x'.repeat(4000)}`;
  for (const whole of [path, after]) {
    const lines: string[] = [];
    const log = createLog('info', {
      pretty: false,
      worker: 12,
      linesTo: { write: (line) => void lines.push(line) },
    });
    const logged = redactPath(whole.slice(1).split('/'));
    createAccessLog(log)(
      exchangeRecord({ path: logged, requestId: 'x'.repeat(128), route: `/${'x'.repeat(200)}` }),
    );
    expect(logged.endsWith('/…')).toBe(true);
    expect(Buffer.byteLength(logged)).toBeLessThanOrEqual(1408);
    expect(lines.map((line) => Buffer.byteLength(line))).toEqual([expect.any(Number)]);
    expect(Buffer.byteLength(lines[0] ?? '')).toBeLessThan(chunkBytes);
  }
});

it.each(['long "words" ', 'ä', '\u0001', '\ud800', '😀'])(
  'an error with many %j is one line in one write',
  (chunk) => {
    const lines: string[] = [];
    const log = createLog('info', { pretty: false, linesTo: { write: (line) => void lines.push(line) } });
    const err = new Error(chunk.repeat(5000));
    log.error({ event: 'request-failed', err }, 'a request failed');
    expect(JSON.parse(lines[0] ?? '').err.message.startsWith(chunk)).toBe(true);
    expect(Buffer.byteLength(lines[0] ?? '')).toBeLessThan(chunkBytes);
  },
);
