import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const script = resolve('scripts/check-isolation.ts');

/** What the check says of one file of src/server. */
function check(code: string): string {
  const root = mkdtempSync(join(tmpdir(), 'shopward-isolation-'));
  try {
    mkdirSync(join(root, 'src/server'), { recursive: true });
    writeFileSync(join(root, 'src/server/x.ts'), code);
    const { stderr } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
      cwd: root,
      encoding: 'utf8',
    });
    return stderr
      .split('\n')
      .filter((line) => line.startsWith('src/'))
      .join('\n');
  } finally {
    rmSync(root, { recursive: true });
  }
}

it('names each callback and each promise that could end the process, and no other', () => {
  const bad = [
    "socket.on('data', (piece) => parser.read(piece));",
    "socket.once('close', () => { leave(); });",
    'setTimeout(() => tell(socket), 10);',
    'setImmediate(run);',
    "socket.write('x', () => tell());",
    'void work();',
    'work().then(tell);',
    'class A { #f() { throw new Error(); } g(socket) { socket.on("end", () => this.#f()); } }',
    "socket.on('end', () => { try { tell(); } finally { socket.destroy(); } });",
  ];
  const good = [
    "socket.on('error', () => socket.destroy());",
    "socket.on('data', isolated((piece) => parser.read(piece), destroy));",
    "socket.on('end', () => { try { tell(); } catch { socket.destroy(); } });",
    "socket.on('end', () => isolate(() => tell()));",
    'isolateLate(work());',
    'work().catch(() => {});',
    'class B { #h() { this.x = 1; } g(socket) { socket.on("end", () => this.#h()); } }',
  ];
  const declared = 'const run = () => tell(); async function work() { await tell(); }\n';
  const named = check(declared + [...bad, ...good].join('\n'));
  const lines = named.split('\n').map((line) => Number(line.split(':')[1]) - 2);
  const all = [...bad, ...good];
  expect([...new Set(lines)].sort((a, b) => a - b).map((i) => all[i])).toEqual(bad);
});

it('holds for src', () => {
  const { status, stderr } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
});
