import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createUpstreamClient } from '../../../src/upstream/client.ts';
import { ClientModel, eventArbitrary, limitsArbitrary } from './client-model.ts';

const folder = path.resolve(import.meta.dirname, '../../../src/upstream');
const copies = mkdtempSync(path.join(tmpdir(), 'shopward-client-'));

beforeAll(() => {
  vi.useFakeTimers({
    toFake: [
      ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const),
      ...(['setImmediate', 'clearImmediate', 'performance'] as const),
    ],
  });
});
afterAll(() => {
  vi.useRealTimers();
  rmSync(copies, { recursive: true });
});

async function playAll(create: typeof createUpstreamClient, numRuns: number): Promise<void> {
  const events = fc.array(eventArbitrary, { maxLength: 120, size: 'max' });
  await fc.assert(
    fc.asyncProperty(limitsArbitrary, events, async (limits, played) => {
      const model = new ClientModel(create, limits);
      for (const event of played) await model.play(event);
      await model.finish();
    }),
    { numRuns },
  );
}

it('keeps every rule in random orders of events', () => playAll(createUpstreamClient, 300));

/** The client with one change in its source. */
async function broken(rule: string, from: string, to: string): Promise<typeof createUpstreamClient> {
  const source = readFileSync(path.join(folder, 'client.ts'), 'utf8');
  expect(source.split(from)).toHaveLength(2);
  const copy = path.join(copies, `${rule.replaceAll(/\W+/g, '-')}.ts`);
  const changed = source.replace(from, to).replaceAll(/from '(\.[^']+)'/g, (_, file: string) => {
    return `from '${path.resolve(folder, file)}'`;
  });
  writeFileSync(copy, changed);
  return (await import(/* @vite-ignore */ pathToFileURL(copy).href)).createUpstreamClient;
}

it.each([
  ['the connection bound', 'this.#connections.size < this.#options.connections', 'true'],
  [
    'each waiter gets one answer',
    'if (wasConnecting || this.#isClosing) this.#refuse(call, connection);',
    'if (wasConnecting || this.#isClosing) void call;',
  ],
  [
    'no request waits without a reason',
    'ready > this.#coming) {\n      if',
    'ready > this.#coming + 1) {\n      if',
  ],
  ['the share of an address', 'isWithinShare ? this.#takeIdle', 'true ? this.#takeIdle'],
  ['idle connections are closed at once', 'if (this.#isClosing || !isUsable', 'if (!isUsable'],
  [
    'busy connections are closed after their exchange',
    "if (connection.phase !== 'busy') this.#end(connection);",
    'this.#end(connection);',
  ],
  [
    'close() resolves',
    'this.#connections.size === 0) this.#closed',
    'this.#connections.size > 0) this.#closed',
  ],
])('finds a client that breaks "%s"', async (rule, from, to) => {
  const create = await broken(rule, from, to);
  await expect(playAll(create, 1_000)).rejects.toMatchObject({
    cause: { message: expect.stringContaining(rule) },
  });
});
