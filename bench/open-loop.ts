/**
 * Sends requests at a fixed rate: node open-loop.ts URL SECONDS PER_SECOND CONNECTIONS FILE, where FILE is a `LoadRequest`
 * in JSON. Latency counts from the time at which a request was due, even if all connections were busy then: so a proxy that
 * stalls is charged for every request that waits (no coordinated omission). The times are a Poisson process, as with
 * independent clients, from a fixed seed: every contestant gets the same ones.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { LoadRequest, LoadResult } from './load.ts';

const [url = '', seconds, perSecond, connections, file = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
const {
  method,
  path,
  fields,
  body = '',
  authorizations = [''],
  status,
} = JSON.parse(readFileSync(file, 'utf8')) as LoadRequest;

/**
 * How long this process sleeps while no request is due. It shares a processor with the upstream, so each figure may be off
 * by this much.
 */
const napMs = 0.05;

const wire = authorizations.map((authorization) => {
  const lines = Object.entries({ ...fields, ...(authorization && { Authorization: authorization }) });
  if (body !== '') lines.push(['Content-Length', String(Buffer.byteLength(body))]);
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${head}\r\n${body}`, 'latin1');
});

const durationMs = Number(seconds) * 1000;
const latencies = new Float64Array(Math.ceil(Number(seconds) * Number(perSecond) * 1.5) + 100);
let answered = 0;
let errors = 0;
let sent = 0;

/** One kept-alive connection with at most one request in progress. */
class Client {
  readonly #socket: Socket;
  readonly #idle: Client[];
  #dueAt = 0;
  /** Bytes of the answer that are still missing; undefined before its head. */
  #missing: number | undefined;

  constructor(idle: Client[]) {
    this.#idle = idle;
    const buffer = Buffer.allocUnsafe(65_536);
    const callback = (length: number) => this.#read(buffer.subarray(0, length));
    this.#socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: { buffer, callback },
    });
    this.#socket.once('connect', () => idle.push(this));
    this.#socket.once('close', () => {
      if (!isOver) errors++;
    });
    this.#socket.on('error', () => {});
  }

  ask(dueAt: number): void {
    this.#dueAt = dueAt;
    this.#socket.write(wire[sent++ % wire.length] as Buffer);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): boolean {
    if (this.#missing === undefined) {
      // Every contestant sends a head in one chunk, with `Content-Length`; a run without these proves nothing.
      const end = chunk.indexOf('\r\n\r\n');
      const head = chunk.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
      if (end < 0 || length === undefined || !head.startsWith(`HTTP/1.1 ${status} `)) errors++;
      this.#missing = Number(length ?? 0) + end + 4;
    }
    this.#missing -= chunk.length;
    if (this.#missing > 0) return true;
    this.#missing = undefined;
    latencies[answered++] = performance.now() - this.#dueAt;
    this.#idle.push(this);
    return true;
  }
}

let isOver = false;
const idle: Client[] = [];
const clients = Array.from({ length: Number(connections) }, () => new Client(idle));
const nap = new Int32Array(new SharedArrayBuffer(4));
let startedAt = 0;
let nextAt = 0;
let seed = 1;

/** Uniform in (0, 1): xorshift, 32 bits. */
function random(): number {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return ((seed >>> 0) + 1) / 4_294_967_298;
}

function sendDue(): void {
  const now = performance.now();
  if (startedAt === 0) {
    if (idle.length < clients.length) {
      setTimeout(sendDue, 1);
      return;
    }
    startedAt = now;
    nextAt = now;
  }
  while (nextAt <= now && nextAt < startedAt + durationMs && idle.length > 0) {
    (idle.shift() as Client).ask(nextAt);
    nextAt += (-Math.log(random()) / Number(perSecond)) * 1000;
  }
  if (nextAt > now) Atomics.wait(nap, 0, 0, napMs);
  // One more second for missing answers; those that do not come are errors.
  const isDone =
    nextAt >= startedAt + durationMs && (answered === sent || now > startedAt + durationMs + 1000);
  if (isDone) report();
  else setImmediate(sendDue);
}

function report(): void {
  isOver = true;
  for (const client of clients) client.close();
  const sorted = latencies.subarray(0, answered).sort();
  const at = (share: number) => sorted[Math.min(answered - 1, Math.floor(answered * share))] ?? Number.NaN;
  const latencyMs = { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
  const result: LoadResult = {
    requests: answered,
    perSecond: answered / Number(seconds),
    latencyMs,
    errors: errors + sent - answered,
  };
  console.log(JSON.stringify(result));
}

sendDue();
