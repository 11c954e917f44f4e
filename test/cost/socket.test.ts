import { afterAll, beforeAll, expect, it } from 'vitest';
import { findFaults } from './growth.ts';
import { socketReaders } from './socket-readers.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

/** The same over real sockets: every field, target and body of a request, every head and body of the shop's answers. */
it('no request and no answer costs more than it is long', { timeout: 600_000 }, async () => {
  const found: string[] = [];
  for (const reader of socketReaders(stage)) found.push(...(await findFaults(reader, 3)));
  expect(found).toEqual([]);
});
