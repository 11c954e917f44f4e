import { expect, it } from 'vitest';
import { readInput } from '../../../src/cli/command-io.ts';

it('standard input is read no further than requested', async () => {
  let read = 0;
  const input = (async function* () {
    for (const chunk of ['abc', 'def', 'ghi']) {
      read += 1;
      yield chunk;
    }
  })();
  const io = { input, env: {}, cwd: '', out: () => {}, err: () => {} };
  expect([await readInput(io, 5), read]).toEqual(['abcde', 2]);
});
