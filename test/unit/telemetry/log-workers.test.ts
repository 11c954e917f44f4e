import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, test } from 'vitest';

const log = path.join(import.meta.dirname, '../../../src/telemetry/log.ts');
const workers = [1, 2, 3];
const perWorker = 8_000;

test('workers that share one pipe write whole lines, and report those dropped for a slow reader', async () => {
  const program = `
    const { createLog } = await import(${JSON.stringify(log)});
    const log = createLog('info', { pretty: false, worker: Number(process.env.WORKER) });
    let n = 0;
    const tick = () => {
      for (let i = 0; i < 40; i++) log.info({ event: 'line', n: n++, path: '/ä'.repeat(100) }, 'x');
      if (n < ${perWorker}) setImmediate(tick);
    };
    tick();`;
  const writers = workers.map((worker) => `WORKER=${worker} "$0" --input-type=module --eval "$1" &`);
  // A real pipe, since Node's own is a socket. It is full and read in pages of memory, so a longer write blocks halfway.
  const shell = spawn(
    'sh',
    ['-c', `(${writers.join(' ')} wait) | dd bs=4096 status=none`, process.execPath, program],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let text = '';
  shell.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  await once(shell, 'close');
  const counts = new Map<number, number>();
  const torn: string[] = [];
  for (const line of text.split('\n').filter(Boolean)) {
    try {
      const { worker, event, count } = JSON.parse(line) as { worker: number; event: string; count: number };
      counts.set(worker, (counts.get(worker) ?? 0) + (event === 'log-lines-dropped' ? count : 1));
    } catch {
      torn.push(line);
    }
  }
  expect(torn).toEqual([]);
  expect([...counts].sort()).toEqual(workers.map((worker) => [worker, perWorker]));
});
