import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../demo/shop-main.ts', import.meta.url));

function start(...args: string[]) {
  return spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
}

describe('the shop as a program', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('serves until %s and exits with 0', async (signal) => {
    const child = start('--port', '0', '--control-port', '0', '--resolver-latency', '0');
    const exited = once(child, 'exit');
    const [firstLine] = await once(child.stdout.setEncoding('utf8'), 'data');
    const url = /http:\/\/\S+/.exec(String(firstLine))?.[0];
    expect((await fetch(`${url}/url-resolver?url=/en/computer`)).status).toBe(200);
    child.kill(signal);
    expect(await exited).toEqual([0, null]);
  });

  it('prints its options', async () => {
    const child = start('--help');
    const exited = once(child, 'exit');
    expect(await text(child.stdout)).toContain('--resolver-latency <ms>');
    expect(await exited).toEqual([0, null]);
  });

  it.each([[['--port', 'x']], [['--nonsense']], [['--fail-rate', '-1']]])(
    'refuses %j with 2',
    async (args) => {
      const child = start(...args);
      const exited = once(child, 'exit');
      expect(await text(child.stderr)).not.toBe('');
      expect(await exited).toEqual([2, null]);
    },
  );
});
