import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stops } from '../../demo/tour.ts';

const root = path.join(import.meta.dirname, '../..');
const patienceMs = 60_000;
let demo: ChildProcess;
let shell: ChildProcess;
let printed = '';

/** Resolves with what `find` finds in the demo's output, or rejects when the demo ends or says nothing for too long. */
function inOutput(find: (output: string) => RegExpExecArray | null): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const found = find(printed);
      if (found !== null) finish(() => resolve(found));
    };
    const fail = () => finish(() => reject(new Error(`the demo said only:\n${printed}`)));
    const timer = setTimeout(fail, patienceMs);
    const finish = (done: () => void) => {
      clearTimeout(timer);
      demo.off('close', fail);
      demo.stdout?.off('data', later);
      demo.stderr?.off('data', later);
      done();
    };
    const later = () => setImmediate(look);
    demo.on('close', fail);
    demo.stdout?.on('data', later);
    demo.stderr?.on('data', later);
    look();
  });
}

beforeAll(async () => {
  demo = spawn(process.execPath, ['demo/run.ts'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [demo.stdout, demo.stderr])
    stream?.setEncoding('utf8').on('data', (text) => (printed += text));
  await inOutput((output) => /^shopward is listening on /m.exec(output));
  // One session: later commands use what earlier ones set.
  shell = spawn('bash', ['--norc', '--noprofile'], { stdio: ['pipe', 'pipe', 'pipe'] });
});

afterAll(async () => {
  shell?.kill('SIGKILL');
  if (demo?.exitCode !== null) return;
  const ended = once(demo, 'close');
  demo.kill('SIGINT');
  const late = setTimeout(() => demo.kill('SIGKILL'), patienceMs);
  const [code] = await ended;
  clearTimeout(late);
  expect(code, printed).toBe(0);
});

/** Runs one line in the shell. Resolves with its output up to `mark`. */
async function paste(line: string, mark: string): Promise<string> {
  let output = '';
  const done = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${line}\nprinted only:\n${output}`)), patienceMs);
    const take = (chunk: string) => {
      output += chunk;
      if (!output.includes(mark)) return;
      clearTimeout(timer);
      shell.stdout?.off('data', take);
      shell.stderr?.off('data', take);
      resolve();
    };
    shell.stdout?.setEncoding('utf8').on('data', take);
    shell.stderr?.setEncoding('utf8').on('data', take);
  });
  shell.stdin?.write(`${line}\necho; echo ${mark}\n`);
  await done;
  return output.slice(0, output.indexOf(mark));
}

describe('npm run demo', () => {
  it('each printed command works when pasted and shows the promised output', async () => {
    const address = (name: string) => new RegExp(`^ *${name} +(http://\\S+)`, 'm').exec(printed)?.[1] ?? '';
    const tour = stops({
      url: address('shopward'),
      adminUrl: address('admin'),
      shopUrl: address('demo shop'),
    });
    expect(tour.length).toBeGreaterThan(5);
    for (const [number, { title, commands, shows }] of tour.entries()) {
      let output = '';
      for (const [step, command] of commands.entries()) {
        // The demo printed this command.
        expect(printed).toContain(command);
        output = await paste(command, `--end-of-${number}-${step}--`);
      }
      expect(output, title).toContain(shows);
    }
  });

  it('its log is readable and contains no token', async () => {
    await inOutput((output) => /GET \/orders 401/.exec(output));
    expect(printed).not.toContain('eyJ');
  });
});
