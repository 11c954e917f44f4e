import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { folder } from './contestants.ts';
import { needProgram } from '../test/harness/programs.ts';

/** The request that a case repeats. */
export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  /** Used one after the other instead of `path`. */
  readonly paths?: readonly string[];
  readonly fields: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Values of `Authorization`, used one after the other. */
  readonly authorizations?: readonly string[];
  /**
   * The field with the `ETag` of the previous answer; a GET comes first. `If-Match`: each connection has its own thread and
   * its own path (`path` with its number), so that every write names the tag of the previous one.
   */
  readonly tagField?: 'If-Match' | 'If-None-Match';
  /**
   * Each connection has its own thread, as with `tagField: 'If-Match'`. Many threads send fewer requests at a time than one
   * does, so fewer requests share a tick of the proxy. For cases that are compared with such a case.
   */
  readonly hasThreadEach?: true;
  /** Expected status of every answer except those to the first GETs; others count as errors. */
  readonly status: number;
  /**
   * Requests due each second, however fast the answers come; latency is measured from the due time. Default: each
   * connection sends the next request as soon as it has the answer.
   */
  readonly perSecond?: number | undefined;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly latencyMs: {
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
    readonly max: number;
  };
  /** Answers of another status, and broken connections. A run with errors proves nothing. */
  readonly errors: number;
  /**
   * The errors by kind: a status, or wrk's name for a fault of the connection. `timeout`: an answer took longer than two
   * seconds. `200` instead of 304: Redis did not answer within `store.timeout`, so the GET was forwarded without a tag.
   */
  readonly errorKinds?: Readonly<Record<string, number>>;
}

const run = promisify(execFile);

/** Runs a load generator on `processor`, for `seconds`, over `connections` kept-alive connections. */
export type Load = (
  url: string,
  request: LoadRequest,
  connections: number,
  seconds: number,
  processor: number,
) => Promise<LoadResult>;

export const load: Load = (url, request, ...more) =>
  (request.perSecond === undefined ? runWrk : runOpenLoop)(url, request, ...more);

const runOpenLoop: Load = async (url, request, connections, seconds, processor) => {
  const program = path.join(import.meta.dirname, 'open-loop.ts');
  const file = path.join(folder, 'request.json');
  writeFileSync(file, JSON.stringify(request));
  const numbers = [seconds, request.perSecond, connections].map(String);
  const args = ['-c', String(processor), process.execPath, program, url, ...numbers, file];
  const { stdout } = await run('taskset', args);
  return JSON.parse(stdout) as LoadResult;
};

const runWrk: Load = async (url, request, connections, seconds, processor) => {
  const wrk = needProgram('wrk');
  const script = path.join(folder, 'case.lua');
  writeFileSync(script, luaScript(request));
  const threads = request.hasThreadEach || request.tagField === 'If-Match' ? connections : 1;
  const limits = ['-t', String(threads), '-c', String(connections), '-d', `${seconds}s`];
  const args = [...limits, '-s', script, url + request.path];
  const { stdout } = await run('taskset', ['-c', String(processor), wrk, ...args]);
  const line = /^RESULT (.*)$/m.exec(stdout);
  const kinds = [...stdout.matchAll(/^ERRORS (\S+) (\d+)$/gm)].filter(([, , times]) => times !== '0');
  if (!line) throw new Error(`bench: unexpected output of wrk: ${stdout}`);
  const [requests = 0, duration = 1, p50 = 0, p99 = 0, p999 = 0, max = 0, errors = 0] = (line[1] as string)
    .split(' ')
    .map(Number);
  return {
    requests,
    perSecond: requests / (duration / 1e6),
    latencyMs: { p50: p50 / 1000, p99: p99 / 1000, p999: p999 / 1000, max: max / 1000 },
    errors,
    errorKinds: Object.fromEntries(kinds.map(([, kind, times]) => [kind, Number(times)])),
  };
};

const quote = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;

function luaScript(request: LoadRequest): string {
  const list = (values: readonly string[]) => `{ ${values.map(quote).join(',\n')} }`;
  return `
wrk.method = ${quote(request.method)}
${request.body === undefined ? '' : `wrk.body = ${quote(request.body)}`}
${Object.entries(request.fields)
  .map(([name, value]) => `wrk.headers[${quote(name)}] = ${quote(value)}`)
  .join('\n')}
local tokens = ${list(request.authorizations ?? [])}
local paths = ${list(request.paths ?? [])}
local formatted = {}
local index = 0
bad = {}
local function count(kinds, kind, times)
  kinds[kind] = (kinds[kind] or 0) + times
end
${request.tagField === undefined ? inOrder(request) : chained(request, request.tagField)}
local threads = {}
setup = function(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end
done = function(summary, latency)
  local kinds = {}
  for _, thread in ipairs(threads) do
    for status, times in pairs(thread:get("bad")) do count(kinds, status, times) end
  end
  for _, kind in ipairs({ "connect", "read", "write", "timeout" }) do count(kinds, kind, summary.errors[kind]) end
  local wrong = 0
  for kind, times in pairs(kinds) do
    wrong = wrong + times
    io.write(string.format("ERRORS %s %d\\n", kind, times))
  end
  io.write(string.format("RESULT %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max,
    wrong))
end
`;
}

/** Requests are written once, before the run. */
function inOrder({ status }: LoadRequest): string {
  return `
init = function()
  for i = 1, math.max(#tokens, #paths, 1) do
    if #tokens > 0 then wrk.headers["Authorization"] = tokens[(i - 1) % #tokens + 1] end
    formatted[i] = wrk.format(nil, paths[i])
  end
end
request = function()
  index = index % #formatted + 1
  return formatted[index]
end
response = function(status)
  if status ~= ${status} then count(bad, tostring(status), 1) end
end`;
}

function chained({ status, path }: LoadRequest, tagField: string): string {
  return `
local location, first, tag, asked, formatted
local untagged = 0
init = function()
  location = ${quote(path)}${tagField === 'If-Match' ? ' .. number' : ''}
  wrk.headers["Authorization"] = tokens[1]
  first = wrk.format("GET", location, nil, "")
end
request = function()
  if tag == nil then
    untagged = untagged + 1
    return first
  end
  if tag ~= asked then
    wrk.headers[${quote(tagField)}] = tag
    formatted = wrk.format(nil, location)
    asked = tag
  end
  return formatted
end
response = function(status, fields)
  if status == 200 and untagged > 0 then untagged = untagged - 1
  elseif status ~= ${status} then count(bad, tostring(status), 1) end
  tag = fields["ETag"] or fields["etag"]
end`;
}
