import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { Redis } from '../redis/redis.ts';
import { dayMs } from '../telemetry/decision-counts.ts';
import {
  bounds,
  type MetRow,
  type RefusalCount,
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
export function createSharedCounts(redis: Redis, prefix: string, keepMs: number): RolloutCounts {
  const metaKey = `${prefix}:{roll-out}`;
  const [rowsKey, refusalsKey] = [`${metaKey}:rows`, `${metaKey}:refusals`];
  const readAll = async (key: string) => (await redis.command('HGETALL', key)) as string[];
  const remove = async (key: string, fields: readonly string[]) => {
    for (let i = 0; i < fields.length; i += mostFields)
      await redis.command('HDEL', key, ...fields.slice(i, i + mostFields));
  };
  return {
    async write({ rows, refusals, lost }, countedForMs) {
      const firstDay = Math.floor(Date.now() / dayMs) - bounds.days + 1;
      await redis.runScript(
        writeScript,
        [metaKey, rowsKey, refusalsKey],
        [
          ...[Math.max(0, countedForMs), lost, keepMs, lostAfterMs, safeAfterMs],
          ...[bounds.refusals, bounds.clients, firstDay, toJson(rows), toJson(refusals)],
        ],
      );
    },
    forget: (rows) => remove(rowsKey, rows),
    async read() {
      const [meta, rows, refusals] = await Promise.all([metaKey, rowsKey, refusalsKey].map(readAll));
      const { wholeSince, why = '' } = Object.fromEntries(pairsOf(meta ?? []));
      if (wholeSince === undefined) return undefined;
      const oldestMs = Date.now() - keepMs;
      const [knownRows, oldRows] = await finishInSlices(parse<MetRow>(rows ?? [], oldestMs));
      const [known, old] = await finishInSlices(parse<RefusalCount>(refusals ?? [], oldestMs));
      await remove(rowsKey, oldRows);
      await remove(refusalsKey, old);
      const entries = Object.entries(known).map(([name, count]) => ({ ...readRefusal(name), ...count }));
      return { rows: knownRows, entries, wholeSinceMs: Number(wholeSince), why };
    },
  };
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
