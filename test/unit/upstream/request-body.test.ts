import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { setImmediate as tick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { readWholeBody } from '../../../src/upstream/request-body.ts';

it.each([
  ['before it is read', false],
  ['in its middle', true],
])('a body that breaks off %s is refused', async (_, isBegun) => {
  const stream = new PassThrough().on('error', () => {});
  if (isBegun) stream.write('x');
  else stream.destroy();
  const limits = { bodyLimitBytes: 10, bodyTimeoutMs: 4_000 };
  const reading = readWholeBody(stream as unknown as IncomingMessage, 'chunked', limits);
  await tick();
  stream.destroy();
  expect(await reading).toMatchObject({ rejection: 'bad-request', reason: 'body-cut' });
});
