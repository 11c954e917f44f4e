import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './programs.ts';

/** What a case asks for, over and over. */
export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Values for `Authorization`, taken in turn. */
  readonly authorizations?: readonly string[];
  /** Status that every answer must have; others count as errors. */
  readonly status: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number };
  /** Answers of another status, and broken connections: a run with any is worthless. */
  readonly errors: number;
}

const run = promisify(execFile);

/** One run of wrk on `processor`, for `seconds`, over `connections` kept-alive connections. */
export async function load(
  url: string,
  request: LoadRequest,
  connections: number,
  seconds: number,
  processor: number,
): Promise<LoadResult> {
  const wrk = findProgram('wrk', 'wrk');
  if (!wrk) throw new Error('bench: wrk is needed; install it with: apt-get install wrk');
  const script = path.join(mkdtempSync(path.join(os.tmpdir(), 'shopward-bench-')), 'case.lua');
  writeFileSync(script, luaScript(request));
  const args = ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '-s', script, url + request.path];
  const { stdout } = await run('taskset', ['-c', String(processor), wrk, ...args]);
  const line = /^RESULT (.*)$/m.exec(stdout);
  if (!line) throw new Error(`bench: wrk said nothing of use: ${stdout}`);
  const [requests = 0, duration = 1, p50 = 0, p99 = 0, p999 = 0, errors = 0] = (line[1] as string)
    .split(' ')
    .map(Number);
  return {
    requests,
    perSecond: requests / (duration / 1e6),
    latencyMs: { p50: p50 / 1000, p99: p99 / 1000, p999: p999 / 1000 },
    errors,
  };
}

const quote = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;

function luaScript(request: LoadRequest): string {
  const tokens = request.authorizations ?? [];
  return `
wrk.method = ${quote(request.method)}
${request.body === undefined ? '' : `wrk.body = ${quote(request.body)}`}
${Object.entries(request.fields)
  .map(([name, value]) => `wrk.headers[${quote(name)}] = ${quote(value)}`)
  .join('\n')}
local tokens = { ${tokens.map(quote).join(',\n')} }
local formatted = {}
local turn = 0
bad = 0
init = function()
  for i, token in ipairs(tokens) do
    wrk.headers["Authorization"] = token
    formatted[i] = wrk.format()
  end
  if #formatted == 0 then formatted[1] = wrk.format() end
end
request = function()
  turn = turn % #formatted + 1
  return formatted[turn]
end
response = function(status)
  if status ~= ${request.status} then bad = bad + 1 end
end
local threads = {}
setup = function(thread) table.insert(threads, thread) end
done = function(summary, latency)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("bad") end
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    wrong + e.connect + e.read + e.write + e.timeout))
end
`;
}
