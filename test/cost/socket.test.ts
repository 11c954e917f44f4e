import { afterAll, beforeAll, expect, it } from 'vitest';
import { findFault } from './growth.ts';
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
  for (const reader of socketReaders(stage)) {
    let count = 0;
    for (const kind of reader.kinds) {
      const fault = await findFault(reader, kind);
      if (fault === undefined) continue;
      found.push(fault);
      if (++count === 3) break;
    }
  }
  expect(found).toEqual([]);
});
