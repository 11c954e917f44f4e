import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { Redis } from '../redis/redis.ts';
import { bounds as countBounds, dayMs } from '../telemetry/decision-counts.ts';
import { bounds, entryKey, type RolloutEntry, readEntryKey } from './counts.ts';
import { tellRowsScript, writeScript } from './lua.ts';
import type { Asked, AskedRows } from './observed-rows.ts';

/** A process that has not written for so long, while others have, has ended without its last write. Exported for its tests. */
export const lostAfterMs = 60_000;

/** One write of a process. */
export interface RolloutBatch {
  /** Of the process. */
  readonly id: string;
  /** Grows with each new batch; a repeated one has the same number, and is added only once. */
  readonly number: number;
  /** Digest of the list and the settings that decide on refusals, by which replicas that differ are noticed. */
  readonly rules: string;
  /** Why counts of this process are missing; empty: none are. */
  readonly lost: string;
  /** Becomes the salt of a store that has none. */
  readonly salt: string;
  /** The last write of a process that ends in order: none of its counts are missing. */
  readonly isLast: boolean;
  readonly entries: readonly RolloutEntry[];
  readonly asked: AskedRows;
}

/** The counts of all replicas together. */
export interface SharedRollout {
  readonly entries: readonly RolloutEntry[];
  /** Since when the counts have no gap, and why not longer. */
  readonly wholeSinceMs: number;
  readonly why: string;
  /** Digest of the rules of each process that counts. */
  readonly rules: readonly string[];
  /** Row -> since when it is observed as it is. */
  readonly rowsSince: Readonly<Record<string, number>>;
  readonly asked: AskedRows;
}

/** As it is in the store: `rows` and `asked` are names and values of a hash in turn. */
interface WrittenRollout extends Omit<SharedRollout, 'rowsSince' | 'asked'> {
  readonly rows: readonly string[];
  readonly asked: readonly string[];
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

  /** Writes a batch, which may be repeated. Resolves to the salt in force; rejects as Redis does. */
  async write({ id, number, rules, lost, salt, isLast, entries, asked }: RolloutBatch): Promise<string> {
    const keys = entries.map((entry) => this.#entryKey(entryKey(entry)));
    const reply = await this.#redis.runScript(
      writeScript,
      [...this.#keys(), ...keys],
      [
        ...[id, number, rules, this.#keepMs, lost, salt, isLast ? 1 : 0],
        ...[lostAfterMs, bounds.entries, bounds.clients, dayMs, countBounds.days, JSON.stringify(asked)],
        ...entries.map(toArgument),
      ],
    );
    return String(reply);
  }

  /**
   * Remembers since when each row is observed by the same rule, the earliest time that any process tells; `rows`: row -> digest
   * of its rule.
   */
  async tellRows(rows: Rules, nowMs: number): Promise<void> {
    const written = await this.#fields(this.#rowsKey);
    const [changed, gone] = await finishInSlices(compareRows(rows, written, nowMs));
    for (const some of slicesOf([...changed]))
      await this.#redis.runScript(tellRowsScript, [this.#rowsKey], [nowMs, ...some.flat()]);
    for (const some of slicesOf(gone)) {
      await this.#redis.command('HDEL', this.#rowsKey, ...some);
      await this.#redis.command('HDEL', this.#askedKey, ...some);
    }
    await this.keepRows();
  }

  /** Renews the expiry of the rows, which ends once nobody counts any more. */
  async keepRows(): Promise<void> {
    await this.#redis.command('PEXPIRE', this.#rowsKey, this.#keepMs);
  }

  /** Undefined: nobody has written yet. Rejects as Redis does. */
  async read(): Promise<WrittenRollout | undefined> {
    const hashes = [this.#key, `${this.#key}:processes`, `${this.#key}:index`];
    const [[meta, processes, index], asked, rows] = await Promise.all([
      Promise.all(hashes.map((key) => this.#hash(key))),
      this.#fields(this.#askedKey),
      this.#fields(this.#rowsKey),
    ]);
    if (meta?.wholeSince === undefined) return undefined;
    const entries = await Promise.all(
      Object.keys(index ?? {}).map(async (key) => readEntry(key, await this.#hash(this.#entryKey(key)))),
    );
    return {
      entries: entries.flatMap((entry) => entry ?? []),
      wholeSinceMs: Number(meta.wholeSince),
      why: meta.why ?? '',
      rules: [...new Set(Object.values(processes ?? {}).map((text) => text.split('|')[2] ?? ''))],
      rows,
      asked,
    };
  }

  #keys(): string[] {
    return [this.#key, `${this.#key}:processes`, `${this.#key}:index`, this.#askedKey];
  }

  get #askedKey(): string {
    return `${this.#key}:asked`;
  }

  get #rowsKey(): string {
    return `${this.#key}:rows`;
  }

  #entryKey(key: string): string {
    return `${this.#key}:entry:${key}`;
  }

  async #hash(key: string): Promise<Record<string, string>> {
    const flat = await this.#fields(key);
    const fields: [string, string][] = [];
    for (let i = 0; i < flat.length; i += 2) fields.push([String(flat[i]), String(flat[i + 1])]);
    return Object.fromEntries(fields);
  }

  /** Names and values in turn. They may be as many as the list has rows, so they are parsed in slices. */
  async #fields(key: string): Promise<readonly string[]> {
    return (await this.#redis.command('HGETALL', key)) as string[];
  }
}

/** Parses what is in the store, in steps. */
export function* describeShared({ rows, asked, ...written }: WrittenRollout): Steps<SharedRollout> {
  const rowsSince: Record<string, number> = {};
  for (let i = 0; i < rows.length; i += 2) {
    yield;
    rowsSince[String(rows[i])] = Number(String(rows[i + 1]).split('|')[1]);
  }
  const askedRows: Record<string, Asked> = {};
  for (let i = 0; i < asked.length; i += 2) {
    yield;
    askedRows[String(asked[i])] = readAsked(String(asked[i + 1]));
  }
  return { ...written, rowsSince, asked: askedRows };
}

/** Row -> digest of its rule. */
type Rules = ReadonlyMap<string, string>;

/** The rows that are to be written, and those of the store that are observed no more. */
function* compareRows(rows: Rules, written: readonly string[], nowMs: number): Steps<[Rules, string[]]> {
  const changed = new Map(rows);
  const gone: string[] = [];
  for (let i = 0; i < written.length; i += 2) {
    yield;
    const row = String(written[i]);
    const [rule, sinceMs] = String(written[i + 1]).split('|');
    if (!rows.has(row)) gone.push(row);
    else if (rows.get(row) === rule && Number(sinceMs) <= nowMs) changed.delete(row);
  }
  return [changed, gone];
}

/** Rows in one command. */
const maxRows = 500;

function* slicesOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += maxRows) yield all.slice(i, i + maxRows);
}

function toArgument(entry: RolloutEntry): string {
  const { requests, sinceMs, lastSeenMs, beyond, days, clients } = entry;
  return JSON.stringify({
    key: entryKey(entry),
    requests,
    since: sinceMs,
    last: lastSeenMs,
    beyond,
    days,
    clients: clients.map((one) => ({
      name: JSON.stringify([one.client, one.userAgent]),
      requests: one.requests,
      last: one.lastSeenMs,
    })),
  });
}

/** Undefined: it has expired, or is malformed. */
function readEntry(key: string, fields: Readonly<Record<string, string>>): RolloutEntry | undefined {
  const refusal = readEntryKey(key);
  if (fields.requests === undefined || refusal === undefined) return undefined;
  const days = Object.entries(fields).flatMap(([name, number]) =>
    name.startsWith('d:') ? [[name.slice(2), Number(number)] as const] : [],
  );
  return {
    ...refusal,
    requests: Number(fields.requests),
    sinceMs: Number(fields.since),
    lastSeenMs: Number(fields.last),
    days: Object.fromEntries(days),
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

function readAsked(text: string): Asked {
  const [lastSeenMs, days = ''] = text.split('|');
  const counts = days.split(',').map((one) => one.split('='));
  return {
    lastSeenMs: Number(lastSeenMs),
    days: Object.fromEntries(counts.map(([day = '', requests]) => [day, Number(requests)])),
  };
}
