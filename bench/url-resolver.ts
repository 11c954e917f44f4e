/**
 * node bench/url-resolver.ts: the cost of a cached answer of the URL resolver compared with a bare node:http server that
 * writes the same bytes, with 1,000 and 1,000,000 entries, and the cost of loading a million rows. Contestants alternate;
 * the ratios of medians count.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { cpuMicroseconds, peakMemoryMiB } from './process-cpu.ts';
import { lineOf, startPinned, stopAll } from './programs.ts';
import { urlOf, writeRows } from './url-resolver-rows.ts';

readArguments({
  name: 'node bench/url-resolver.ts',
  about: 'Measures the cost of a cached answer of the URL resolver, and of loading a million rows.',
});

const rounds = 7;
const requestsPerRound = 40_000;
const connections = 32;
const million = 1_000_000;

interface Contestant {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  /** How many of its URLs are requested, in random order. */
  readonly asked: number;
  readonly loading: { readonly ms: number; readonly longestBlockMs: number; readonly memoryMiB: number };
  readonly samples: number[];
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-bench-'));
const file = { 1000: path.join(folder, 'thousand.csv'), [million]: path.join(folder, 'million.csv') };

try {
  await writeRows(file[1000], 1000);
  await writeRows(file[million], million);
  const cache = await start('cache, 1,000,000, all asked', 'cache', million);
  const rows = await start('file, 1,000,000, all asked', 'file', million);
  const bare = await start('bare node:http', 'bare', 1000);
  const contestants = [
    bare,
    // Gets the same requests as the contestants below: this shows what a million distinct URLs cost Node itself.
    { ...bare, name: 'bare node:http, 1,000,000 asked', asked: million, samples: [] },
    await start('cache, 1,000', 'cache', 1000),
    // Separates the cost of a large table from the cost of requesting more URLs than fit into the processor's cache.
    { ...cache, name: 'cache, 1,000,000, 1,000 asked', asked: 1000, samples: [] },
    cache,
    await start('file, 1,000', 'file', 1000),
    { ...rows, name: 'file, 1,000,000, 1,000 asked', asked: 1000, samples: [] },
    rows,
  ];
  for (let round = -2; round < rounds; round += 1) {
    for (const one of contestants) {
      const before = cpuMicroseconds([one.pid]);
      await load(one, requestsPerRound);
      const cpu = (cpuMicroseconds([one.pid]) - before) / requestsPerRound;
      // The first rounds warm up the compiler, and do not count.
      if (round >= 0) one.samples.push(cpu);
    }
  }
  report(contestants);
} finally {
  await stopAll();
  rmSync(folder, { recursive: true });
}

async function start(name: string, mode: string, entries: number): Promise<Contestant> {
  const program = path.join(import.meta.dirname, 'url-resolver-server.ts');
  const source = file[entries as keyof typeof file] ?? '';
  const args = ['--expose-gc', program, mode, String(entries), source];
  const child = startPinned(0, process.execPath, args);
  // Loading may use every core, as it does in production.
  const [line] = await lineOf(child, /\{.*\}/);
  const { port, loading } = JSON.parse(line);
  return { name, pid: child.pid ?? 0, port, asked: entries, loading, samples: [] };
}

/** Requests URLs in random order over kept-alive connections, one at a time on each. */
async function load({ port, asked }: Contestant, requests: number): Promise<void> {
  let left = requests;
  const one = () =>
    new Promise<void>((done, failed) => {
      const socket = connect(port, '127.0.0.1');
      let answer = '';
      const ask = () => {
        if (left-- <= 0) return socket.end(done);
        const url = encodeURIComponent(urlOf(Math.floor(Math.random() * asked)));
        socket.write(
          `GET /url-resolver?url=${url} HTTP/1.1\r\nHost: api.shop.example\r\nAccept: application/vnd.api+json\r\nAccept-Language: en\r\n\r\n`,
        );
      };
      socket.setEncoding('latin1').once('connect', ask).once('error', failed);
      socket.on('data', (chunk) => {
        answer += chunk;
        const head = answer.indexOf('\r\n\r\n');
        const length = /Content-Length: (\d+)/i.exec(answer)?.[1];
        if (head < 0 || length === undefined || answer.length < head + 4 + Number(length)) return;
        if (!answer.startsWith('HTTP/1.1 200 ')) return failed(new Error(answer.slice(0, 80)));
        answer = '';
        ask();
      });
    });
  await Promise.all(Array.from({ length: connections }, one));
}

function report(contestants: readonly Contestant[]): void {
  const base = median(contestants[0]?.samples ?? []);
  console.log(
    '| server, entries | CPU us/request | least-most | ratio | load s | longest block ms | RSS MiB | peak MiB |',
  );
  console.log('|---|---|---|---|---|---|---|---|');
  for (const { name, samples, loading, pid } of contestants) {
    const cpu = median(samples);
    const spread = `${Math.min(...samples).toFixed(1)}-${Math.max(...samples).toFixed(1)}`;
    const cells = [name, cpu.toFixed(1), spread, (cpu / base).toFixed(2), (loading.ms / 1000).toFixed(2)];
    cells.push(
      loading.longestBlockMs.toFixed(1),
      loading.memoryMiB.toFixed(0),
      peakMemoryMiB(pid).toFixed(0),
    );
    console.log(`| ${cells.join(' | ')} |`);
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
