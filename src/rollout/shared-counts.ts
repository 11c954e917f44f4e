import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { Redis } from '../redis/redis.ts';
import { dayMs } from '../telemetry/decision-counts.ts';
import {
  bounds,
  type Counting,
  type MetRow,
  type RefusalCount,
  type RolloutBatch,
  type RolloutCounts,
  readRefusal,
  safeAfterMs,
} from './counts.ts';
import { writeScript } from './lua.ts';

/** If all processes are silent for longer than this, the counts have a gap. Exported for its tests. */
export const lostAfterMs = 60_000;

/** Maximum number of fields in one command. */
const mostFields = 500;

/** The counts of all replicas, under `PREFIX:{roll-out}`: docs/decisions/rollout-counts.md. */
export class SharedCounts implements RolloutCounts {
  readonly #redis: Redis;
  readonly #keepMs: number;
  readonly #keys: readonly [meta: string, rows: string, refusals: string];

  constructor(redis: Redis, prefix: string, keepMs: number) {
    const key = `${prefix}:{roll-out}`;
    this.#redis = redis;
    this.#keepMs = keepMs;
    this.#keys = [key, `${key}:rows`, `${key}:refusals`];
  }

  async write({ rows, refusals, lost }: RolloutBatch, countedForMs: number): Promise<void> {
    const firstDay = Math.floor(Date.now() / dayMs) - bounds.days + 1;
    await this.#redis.runScript(writeScript, this.#keys, [
      ...[Math.max(0, countedForMs), lost, this.#keepMs, lostAfterMs, safeAfterMs],
      ...[bounds.refusals, bounds.clients, firstDay, toJson(rows), toJson(refusals)],
    ]);
  }

  forget(rows: readonly string[]): Promise<void> {
    return this.#remove(this.#keys[1], rows);
  }

  async read(): Promise<Omit<Counting, 'problems'> | undefined> {
    const [meta = [], rows = [], refusals = []] = await Promise.all(
      this.#keys.map(async (key) => (await this.#redis.command('HGETALL', key)) as string[]),
    );
    const { wholeSince, why = '' } = Object.fromEntries(pairsOf(meta));
    if (wholeSince === undefined) return undefined;
    const oldestMs = Date.now() - this.#keepMs;
    const [knownRows, oldRows] = await finishInSlices(parse<MetRow>(rows, oldestMs));
    const [known, old] = await finishInSlices(parse<RefusalCount>(refusals, oldestMs));
    await this.#remove(this.#keys[1], oldRows);
    await this.#remove(this.#keys[2], old);
    return {
      rows: knownRows,
      entries: Object.entries(known).map(([name, count]) => ({ ...readRefusal(name), ...count })),
      wholeSinceMs: Number(wholeSince),
      why,
    };
  }

  async #remove(key: string, fields: readonly string[]): Promise<void> {
    for (let i = 0; i < fields.length; i += mostFields)
      await this.#redis.command('HDEL', key, ...fields.slice(i, i + mostFields));
  }
}

/** A lone surrogate in a name would be an error in the script. */
function toJson(counts: object): string {
  return JSON.stringify(counts).replaceAll(/\\ud[89a-f][0-9a-f]{2}/g, '\\ufffd');
}

function* pairsOf(flat: readonly string[]): Generator<[name: string, value: string]> {
  for (let i = 0; i < flat.length; i += 2) yield [String(flat[i]), String(flat[i + 1])];
}

/** The counts by name, and the names of those that are too old. In steps, since a list may have 60,000 rows. */
function* parse<Count extends { readonly lastSeenMs: number }>(
  flat: readonly string[],
  oldestMs: number,
): Steps<[known: Record<string, Count>, old: string[]]> {
  const known: Record<string, Count> = {};
  const old: string[] = [];
  for (const [name, text] of pairsOf(flat)) {
    yield;
    const count = JSON.parse(text) as Count;
    if (count.lastSeenMs < oldestMs) old.push(name);
    else known[name] = count;
  }
  return [known, old];
}
