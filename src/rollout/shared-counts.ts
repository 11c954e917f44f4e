import { defineScript, type Redis, type RedisArgument } from '../redis/redis.ts';
import { bounds, dayMs, entryKey, hourMs, type RolloutEntry } from './counts.ts';

/** A process that has not written for so long, while others have, ended without its last word. */
export const lostAfterMs = 60_000;

// KEYS meta, processes, index, an entry each; ARGV id, batch, rules, keepMs, what was lost, salt, isLast, bounds, entries
const writeScript = defineScript(
  'write-rollout',
  `
local META, PROCESSES, INDEX = KEYS[1], KEYS[2], KEYS[3]
local id, batch, rules, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local lost_after, most_entries, most_clients = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local hour_ms, day_ms, most_hours = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local first_entry = 14
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function gap(why) redis.call('HSET', META, 'wholeSince', text(now), 'why', why) end

redis.call('HSETNX', META, 'salt', ARGV[6])
local last = tonumber(redis.call('HGET', META, 'last') or '0')
if last == 0 then gap('counting began then') end

-- Who is there. When nobody could write for a while, those that are still there have all counted, and will write now.
local all_silent = now - last > lost_after
local known, others, done = false, 0, 0
local flat = redis.call('HGETALL', PROCESSES)
for i = 1, #flat, 2 do
  local seen_batch, seen, seen_rules = string.match(flat[i + 1], '^(%d+)|(%d+)|(.*)$')
  if flat[i] == id then
    known, done = true, tonumber(seen_batch)
  elseif all_silent then
    others = others + 1
    redis.call('HSET', PROCESSES, flat[i], seen_batch .. '|' .. text(now) .. '|' .. seen_rules)
  elseif now - tonumber(seen) > lost_after then
    redis.call('HDEL', PROCESSES, flat[i])
    gap('a process ended without its last word')
  else
    others = others + 1
  end
end
if last > 0 and all_silent and not known and others == 0 then gap('nobody counted before') end
if ARGV[5] ~= '' then gap(ARGV[5]) end

local function has_place(key)
  if redis.call('HGET', INDEX, key) or redis.call('HLEN', INDEX) < most_entries then return true end
  local index = redis.call('HGETALL', INDEX)
  for i = 1, #index, 2 do
    if now - tonumber(index[i + 1]) > keep then redis.call('HDEL', INDEX, index[i]) end
  end
  return redis.call('HLEN', INDEX) < most_entries
end

local function forget_old(KEY)
  local fields = redis.call('HGETALL', KEY)
  local clients = 0
  for i = 1, #fields, 2 do
    local kind, rest = string.sub(fields[i], 1, 2), string.sub(fields[i], 3)
    local is_old = (kind == 'h:' and tonumber(rest) < math.floor(now / hour_ms) - most_hours)
      or (kind == 'd:' and (tonumber(rest) + 1) * day_ms < now - keep)
    if kind == 'c:' then
      is_old = tonumber(string.match(fields[i + 1], '^%d+|(%d+)$')) < now - keep
      if not is_old then clients = clients + 1 end
    end
    if is_old then redis.call('HDEL', KEY, fields[i]) end
  end
  redis.call('HSET', KEY, 'clients', text(clients))
end

local function add(KEY, field, number)
  local before = redis.call('HGET', KEY, field)
  redis.call('HSET', KEY, field, text(tonumber(before or '0') + number))
  return not before
end

local function add_client(KEY, client)
  local field = 'c:' .. client.name
  local before = redis.call('HGET', KEY, field)
  local count, seen = 0, 0
  if before then
    count, seen = string.match(before, '^(%d+)|(%d+)$')
  elseif tonumber(redis.call('HGET', KEY, 'clients') or '0') >= most_clients then
    return add(KEY, 'beyond', client.requests)
  else
    add(KEY, 'clients', 1)
  end
  local latest = math.max(tonumber(seen), client.last)
  redis.call('HSET', KEY, field, text(count + client.requests) .. '|' .. text(latest))
end

local function add_entry(KEY, entry)
  if not has_place(entry.key) then return gap('there are more rows and reasons than are kept') end
  redis.call('HSET', INDEX, entry.key, text(now))
  redis.call('HSETNX', KEY, 'since', text(entry.since))
  add(KEY, 'requests', entry.requests)
  if tonumber(redis.call('HGET', KEY, 'last') or '0') < entry.last then redis.call('HSET', KEY, 'last', text(entry.last)) end
  add(KEY, 'beyond', entry.beyond)
  local is_new_hour = false
  for bucket, number in pairs(entry.buckets) do is_new_hour = add(KEY, bucket, number) or is_new_hour end
  if is_new_hour then forget_old(KEY) end
  for _, client in ipairs(entry.clients) do add_client(KEY, client) end
  redis.call('PEXPIRE', KEY, keep)
end

-- A batch whose answer was lost comes again: it counts once.
if batch > done then
  for i = first_entry, #ARGV do add_entry(KEYS[4 + i - first_entry], cjson.decode(ARGV[i])) end
  done = batch
end
redis.call('HSET', META, 'last', text(now))
if ARGV[7] == '1' then
  redis.call('HDEL', PROCESSES, id)
else
  redis.call('HSET', PROCESSES, id, text(done) .. '|' .. text(now) .. '|' .. rules)
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep) end
return redis.call('HGET', META, 'salt')
`,
);

/** What one process writes at once. */
export interface RolloutBatch {
  /** Of the process. */
  readonly id: string;
  /** Counts up with each batch that is new; one that comes again is the same. */
  readonly number: number;
  /** What of the list and the configuration decides, as a digest: replicas that differ are named. */
  readonly rules: string;
  /** Why what this process has counted is not whole; empty: it is. */
  readonly lost: string;
  /** For a store that has none. */
  readonly salt: string;
  /** The process ends: nothing of it is missing. */
  readonly isLast: boolean;
  readonly entries: readonly RolloutEntry[];
}

/** What the replicas have counted together. */
export interface SharedRollout {
  readonly entries: readonly RolloutEntry[];
  /** Nothing is missing of what came since, and why not before. */
  readonly wholeSinceMs: number;
  readonly why: string;
  /** Digest of the rules of each process that counts. */
  readonly rules: readonly string[];
  /** Row -> since when it is observed as it is. */
  readonly rowsSince: Readonly<Record<string, number>>;
}

/** The counts of all replicas, under `PREFIX:{rollout}`: docs/decisions/rollout-counts.md. */
export class SharedCounts {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #keepMs: number;

  constructor(redis: Redis, prefix: string, keepMs: number) {
    this.#redis = redis;
    this.#key = `${prefix}:{rollout}`;
    this.#keepMs = keepMs;
  }

  /** Gives the salt in force. Rejects as Redis does; the same batch may be written again. */
  async write({ id, number, rules, lost, salt, isLast, entries }: RolloutBatch): Promise<string> {
    const keys = entries.map((entry) => this.#entryKey(entryKey(entry)));
    const reply = await this.#redis.runScript(
      writeScript,
      [...this.#keys(), ...keys],
      [
        ...[id, number, rules, this.#keepMs, lost, salt, isLast ? 1 : 0],
        ...[lostAfterMs, bounds.entries, bounds.clients, hourMs, dayMs, bounds.hours],
        ...entries.map(toArgument),
      ],
    );
    return String(reply);
  }

  /** Remembers since when each row is observed by the same rule; `rows`: row -> digest of its rule. */
  async tellRows(rows: ReadonlyMap<string, string>, nowMs: number): Promise<void> {
    const before = await this.#hash(this.#rowsKey);
    const changed = [...rows].filter(([row, rule]) => before[row]?.split('|')[0] !== rule);
    const gone = Object.keys(before).filter((row) => !rows.has(row));
    const fields = changed.flatMap(([row, rule]) => [row, `${rule}|${nowMs}`]);
    for (const some of slicesOf(fields)) await this.#redis.command('HSET', this.#rowsKey, ...some);
    for (const some of slicesOf(gone)) await this.#redis.command('HDEL', this.#rowsKey, ...some);
    await this.keepRows();
  }

  /** Rows go with everything else when nobody counts any more. */
  async keepRows(): Promise<void> {
    await this.#redis.command('PEXPIRE', this.#rowsKey, this.#keepMs);
  }

  /** Undefined: nobody has written yet. Rejects as Redis does. */
  async read(): Promise<SharedRollout | undefined> {
    const [meta, processes, index] = await Promise.all(this.#keys().map((key) => this.#hash(key)));
    if (meta?.wholeSince === undefined) return undefined;
    const entries = await Promise.all(
      Object.keys(index ?? {}).map(async (key) => readEntry(key, await this.#hash(this.#entryKey(key)))),
    );
    const rows = Object.entries(await this.#hash(this.#rowsKey));
    return {
      entries: entries.flatMap((entry) => entry ?? []),
      wholeSinceMs: Number(meta.wholeSince),
      why: meta.why ?? '',
      rules: [...new Set(Object.values(processes ?? {}).map((text) => text.split('|')[2] ?? ''))],
      rowsSince: Object.fromEntries(rows.map(([row, text]) => [row, Number(text.split('|')[1])])),
    };
  }

  #keys(): string[] {
    return [this.#key, `${this.#key}:processes`, `${this.#key}:index`];
  }

  get #rowsKey(): string {
    return `${this.#key}:rows`;
  }

  #entryKey(key: string): string {
    return `${this.#key}:entry:${key}`;
  }

  async #hash(key: string): Promise<Record<string, string>> {
    const flat = (await this.#redis.command('HGETALL', key)) as string[];
    const fields: [string, string][] = [];
    for (let i = 0; i < flat.length; i += 2) fields.push([String(flat[i]), String(flat[i + 1])]);
    return Object.fromEntries(fields);
  }
}

/** Arguments of one command. */
const most = 1_000;

function* slicesOf(all: readonly RedisArgument[]): Generator<readonly RedisArgument[]> {
  for (let i = 0; i < all.length; i += most) yield all.slice(i, i + most);
}

function toArgument(entry: RolloutEntry): string {
  const { requests, sinceMs, lastSeenMs, beyond, hours, days, clients } = entry;
  const named = (letter: string, buckets: Readonly<Record<string, number>>) =>
    Object.entries(buckets).map(([bucket, number]) => [`${letter}:${bucket}`, number] as const);
  return JSON.stringify({
    key: entryKey(entry),
    requests,
    since: sinceMs,
    last: lastSeenMs,
    beyond,
    buckets: Object.fromEntries([...named('h', hours), ...named('d', days)]),
    clients: clients.map((one) => ({
      name: JSON.stringify([one.client, one.userAgent]),
      requests: one.requests,
      last: one.lastSeenMs,
    })),
  });
}

/** Undefined: it has expired, or is not ours. */
function readEntry(key: string, fields: Readonly<Record<string, string>>): RolloutEntry | undefined {
  const [, kind, reason, method, route] = /^(observed|refused) (\S+) (\S+) (.+)$/s.exec(key) ?? [];
  if (fields.requests === undefined || kind === undefined) return undefined;
  const buckets = (letter: string) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, number]) =>
        name.startsWith(`${letter}:`) ? [[name.slice(2), Number(number)] as const] : [],
      ),
    );
  return {
    ...({ kind, reason, method, route } as Pick<RolloutEntry, 'kind' | 'reason' | 'method' | 'route'>),
    requests: Number(fields.requests),
    sinceMs: Number(fields.since),
    lastSeenMs: Number(fields.last),
    hours: buckets('h'),
    days: buckets('d'),
    clients: Object.entries(fields).flatMap(([name, text]) =>
      name.startsWith('c:') ? readClient(name, text) : [],
    ),
    beyond: Number(fields.beyond ?? 0),
  };
}

function readClient(name: string, text: string): RolloutEntry['clients'][number] {
  const [client = '', userAgent = ''] = JSON.parse(name.slice(2)) as string[];
  const [requests, lastSeenMs] = text.split('|').map(Number);
  return { client, userAgent, requests: requests ?? 0, lastSeenMs: lastSeenMs ?? 0 };
}
