/**
 * node bench/timeline.ts: where a forwarded GET spends its time in shopward, with the access log, and in nginx: the system
 * calls of the main thread, from `perf trace`, at fixed rates. A tick is the time between two waits for events.
 */
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { writeResult } from '../scripts/results.ts';

const { seconds } = readArguments<{ seconds: number }>({
  name: 'node bench/timeline.ts',
  about: 'Times of the system calls of a forwarded GET. Needs perf and the right to trace.',
  options: [['--seconds <n>', 'length of each trace', 2]],
});

// Imported after the arguments are read, because `--help` does not need it.
const { folder, loadProcessor, startUpstream } = await import('./contestants.ts');
const { load } = await import('./load.ts');
const { stopAll } = await import('./programs.ts');
const { get, Stage } = await import('./stage.ts');

interface Call {
  readonly name: string;
  readonly fd: number;
  readonly startUs: number;
  readonly endUs: number;
  readonly result: number;
}

type Peer = 'client' | 'shop';

async function trace(pid: number, run: () => Promise<unknown>): Promise<Call[]> {
  const file = path.join(folder, 'trace.txt');
  const args = ['-c', String(loadProcessor), 'perf', 'trace', '-m', '4096', '-o', file, '-t', String(pid)];
  const tracer = spawn('taskset', args, { stdio: 'ignore' });
  const ended = new Promise((resolve, reject) => tracer.once('exit', resolve).once('error', reject));
  await new Promise((resolve) => setTimeout(resolve, 500));
  await run();
  tracer.kill('SIGINT');
  await ended;
  const text = readFileSync(file, 'utf8');
  if (text.includes('LOST')) throw new Error('perf has lost events: the machine is too busy');
  return text.split('\n').flatMap((line) => readCall(line) ?? []);
}

/** `  0.040 ( 0.004 ms): write(fd: 30<socket:[1063]>, buf: 0x7f, count: 203) = 203` */
const callLine =
  /^ *([\d.]+) \( *([\d.]+) ms\): +(?:\.\.\. \[continued\]: )?(\w+)\((?:e?p?fd: (\d+))?.* = (-?\d+)/;

function readCall(line: string): Call | undefined {
  const [, start, ms, name = '', fd = '-1', result] = callLine.exec(line) ?? [];
  if (start === undefined) return undefined;
  const startUs = Number(start) * 1000;
  return { name, fd: Number(fd), startUs, endUs: startUs + Number(ms) * 1000, result: Number(result) };
}

/** Adds the open sockets of a process: descriptor -> the peer, client or shop. */
function notePeers(peers: Map<number, Peer>, pid: number, port: number, shopPort: number): void {
  const sockets = new Map<string, Peer>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n')) {
    const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
    const portOf = (address: string) => Number.parseInt(address.split(':')[1] ?? '', 16);
    if (portOf(remote) === shopPort) sockets.set(inode, 'shop');
    else if (portOf(local) === port && portOf(remote) !== 0) sockets.set(inode, 'client');
  }
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const [, inode = ''] = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`)) ?? [];
    const peer = sockets.get(inode);
    if (peer !== undefined) peers.set(Number(fd), peer);
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

/** Microseconds of each request, and of each tick. */
class Timeline {
  readonly toShop: number[] = [];
  readonly atShop: number[] = [];
  readonly toClient: number[] = [];
  readonly ticks: number[] = [];
  calls = 0;
  #read: Record<Peer, number[]> = { client: [], shop: [] };
  readonly #asked = new Map<number, number>();
  #wokenUs: number | undefined;

  constructor(calls: readonly Call[], peers: ReadonlyMap<number, Peer>) {
    for (const call of calls) this.#add(call, peers.get(call.fd));
  }

  /** Within a tick, requests are served in the order in which they were read. */
  #add({ name, fd, startUs, endUs, result }: Call, peer: Peer | undefined): void {
    this.calls += 1;
    if (name.startsWith('epoll')) {
      if (this.#wokenUs !== undefined) this.ticks.push(startUs - this.#wokenUs);
      this.#wokenUs = result > 0 ? endUs : undefined;
      // A write belongs to a read of the same tick; one without such a read has no time.
      if (result > 0) this.#read = { client: [], shop: [] };
    } else if (peer === undefined || result <= 0) return;
    else if (/^(?:read|recv)/.test(name)) {
      this.#read[peer].push(startUs);
      const asked = this.#asked.get(fd);
      if (peer === 'shop' && asked !== undefined) this.atShop.push(startUs - asked);
      this.#asked.delete(fd);
    } else if (/^(?:write|send)/.test(name)) {
      const read = this.#read[peer === 'shop' ? 'client' : 'shop'].shift();
      if (read !== undefined) (peer === 'shop' ? this.toShop : this.toClient).push(endUs - read);
      if (peer === 'shop') this.#asked.set(fd, endUs);
    }
  }
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? Number.NaN);
  return `${at(0.5)} us, p99 ${at(0.99)}`;
}

try {
  const stage = new Stage((await startUpstream()).url);
  const contestants = [await stage.shopwardWithAccessLog(), await stage.nginx()].flatMap((one) => one ?? []);
  const details: (readonly [string, string])[] = [];
  execFileSync('perf', ['--version'], { stdio: 'ignore' });
  for (const { url } of contestants) await load(url, get('/small'), 32, 4, loadProcessor);
  for (const perSecond of [200, 1_000, 6_000, 12_000]) {
    const connections = perSecond === 200 ? 1 : 32;
    const timelines: (readonly [string, Timeline])[] = [];
    for (const { name, url, pids } of contestants) {
      const [pid = 0] = pids;
      const peers = new Map<number, Peer>();
      const ports = [url, stage.upstream].map((one) => Number(new URL(one).port)) as [number, number];
      const notes = setInterval(() => notePeers(peers, pid, ...ports), 50);
      const calls = await trace(pid, () => {
        const request = { ...get('/small'), perSecond };
        return load(url, request, connections, seconds, loadProcessor);
      });
      clearInterval(notes);
      timelines.push([name.replace(/,.*/, ''), new Timeline(calls, peers)]);
    }
    const say = (what: string, of: (timeline: Timeline) => string) => {
      const text = timelines.map(([name, timeline]) => `${name} ${of(timeline)}`).join('<br>');
      console.log(`| ${perSecond} a second | ${what} | ${text} |`);
      details.push([`${perSecond.toLocaleString('en')} a second: ${what}`, text]);
    };
    say('client read to shop write', ({ toShop }) => spread(toShop));
    say('shop write to shop read', ({ atShop }) => spread(atShop));
    say('shop read to client write', ({ toClient }) => spread(toClient));
    say('tick', ({ ticks }) => spread(ticks));
    say('requests a tick, system calls a request', ({ toClient, ticks, calls }) => {
      const [perTick, perRequest] = [toClient.length / ticks.length, calls / toClient.length];
      return `${perTick.toFixed(1)}, ${perRequest.toFixed(1)}`;
    });
  }
  writeResult('timeline', {
    title: 'Timeline of a forwarded GET',
    command: 'node bench/timeline.ts',
    figures: details.filter(([what]) => /client|calls/.test(what) && !what.startsWith('12,')),
    details,
  });
} finally {
  await stopAll();
}
