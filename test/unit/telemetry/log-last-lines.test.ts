import { execFile } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const log = path.join(import.meta.dirname, '../../../src/telemetry/log.ts');

test.each([
  ['process.exit', 'process.exit(3)', 3],
  ['an uncaught fault', 'throw new Error("broken")', 1],
  ['the end of all work', '', 0],
])('lines of the last tick are written before %s', async (_, end, status) => {
  const program = `
    const { createLog } = await import(${JSON.stringify(log)});
    const log = createLog('info', { pretty: false });
    for (let i = 0; i < 2000; i++) log.info({ event: 'line', i }, 'x'.repeat(100));
    ${end}`;
  const { stdout, code } = await new Promise<{ stdout: string; code: number }>((resolve) => {
    const args = ['--input-type=module', '--eval', program];
    execFile(process.execPath, args, { maxBuffer: 1e8 }, (fault, stdout) =>
      resolve({ stdout, code: Number(fault?.code ?? 0) }),
    );
  });
  const numbers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { i: number }).i);
  expect([numbers, code]).toEqual([Array.from({ length: 2000 }, (_, i) => i), status]);
});
