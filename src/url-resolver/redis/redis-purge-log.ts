import { randomUUID } from 'node:crypto';
import { defineScript, type Redis } from '../../redis/redis.ts';
import { type PurgeEntry, readPurgeEntry, writePurge } from '../purge/purge.ts';
import { retainedPurges } from '../purge/purge-history.ts';
import type { PurgeLog, PurgeReading } from '../purge/purge-log.ts';

// A line is `seq:id:previousId:purge`. One key, so one slot: each script is one step.
const begin = `
local function last(key, id)
  local line = redis.call('LINDEX', key, -1)
  if not line then
    line = '0:' .. id .. '::null'
    redis.call('RPUSH', key, line)
  end
  return line, string.match(line, '^(%d+):([^:]*):')
end
`;

// KEYS log; ARGV id of entry 0 if there is no log, id, purge, channel, entries to keep
const appendScript = defineScript(
  'purge-append',
  `${begin}
local _, seq, id = last(KEYS[1], ARGV[1])
local line = string.format('%.0f', seq + 1) .. ':' .. ARGV[2] .. ':' .. id .. ':' .. ARGV[3]
redis.call('RPUSH', KEYS[1], line)
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[5]), -1)
redis.call('PUBLISH', ARGV[4], line)
return line
`,
);

// KEYS log; ARGV id of entry 0 if there is no log, seq, id
const readScript = defineScript(
  'purge-read',
  `${begin}
local line, seq, id = last(KEYS[1], ARGV[1])
local behind = seq - tonumber(ARGV[2])
if behind == 0 and id == ARGV[3] then return {'continues'} end
if behind > 0 then
  local lines = redis.call('LRANGE', KEYS[1], -(behind + 1), -1)
  local firstSeq, firstId = string.match(lines[1], '^(%d+):([^:]*):')
  if tonumber(firstSeq) == tonumber(ARGV[2]) and firstId == ARGV[3] then
    lines[1] = 'continues'
    return lines
  end
end
return {'another-past', line}
`,
);

/** The purge log as a list `<prefix>:purges` in Redis, with a channel of the same name. */
export function createRedisPurgeLog(redis: Redis, prefix: string): PurgeLog {
  const key = `${prefix}:purges`;
  return {
    async append(purge): Promise<PurgeEntry> {
      const args = [randomUUID(), randomUUID(), writePurge(purge), key, retainedPurges];
      return readPurgeEntry(String(await redis.runScript(appendScript, [key], args)));
    },
    async read(from): Promise<PurgeReading> {
      const reply = await redis.runScript(readScript, [key], [randomUUID(), from.seq, from.id]);
      const [kind, ...lines] = (reply as unknown[]).map(String);
      const entries = lines.map(readPurgeEntry);
      if (kind === 'continues') return { kind, entries };
      const [last] = entries;
      if (last === undefined) throw new Error('the purge log gave no position');
      return { kind: 'another-past', position: { seq: last.seq, id: last.id } };
    },
    subscribe(listener) {
      return redis.subscribe(
        key,
        (line) => listener.onEntry(readPurgeEntry(line)),
        () => listener.onGap(),
      );
    },
  };
}
