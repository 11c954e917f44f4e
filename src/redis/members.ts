import { defineScript } from './redis.ts';

/** What a process announces to the others that share its part of the store. */
export interface Member {
  /** Address of the shop: `publicUrl`, else `upstream.url`. */
  readonly owner: string;
  /** `entityTags.lease`: the longest time for which a write of this process may be under way; 0: no entity tags. */
  readonly leaseMs: number;
  /** One line for each tracked resource, with the names of its parameters, which records' keys contain; empty: no tags. */
  readonly tracked: readonly string[];
  /** Fingerprint of the key of token digests; empty: no refresh tokens. */
  readonly digestKey: string;
}

/** The reply of the store to an announcement. Exported for its tests. */
export interface Register {
  /** No process was announced, not even this one: the store is new, or was emptied. */
  readonly isNew: boolean;
  /** Fingerprint of the key by which the tokens in the store are digested; empty: there are none yet. */
  readonly digestKey: string;
  /** Announcements of other processes in the last `memberTtlMs`; equal ones count once. */
  readonly others: readonly Member[];
}

/** How often a process announces itself. */
export const announceEveryMs = 2_000;
/** A process that has not announced itself for so long counts as ended. */
export const memberTtlMs = 10_000;

// KEYS members, marker; ARGV id, own text, liveMs
export const announceScript = defineScript(
  'announce-member',
  `
local MEMBERS, MARKER = KEYS[1], KEYS[2]
local id, text, live = ARGV[1], ARGV[2], tonumber(ARGV[3])
local mine = cjson.decode(text)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is_new = redis.call('EXISTS', MEMBERS) == 0

local others, known, keys = {}, {}, {}
local flat = redis.call('HGETALL', MEMBERS)
for i = 1, #flat, 2 do
  local seen, said = string.match(flat[i + 1], '^(%d+)|(.*)$')
  local age = now - tonumber(seen)
  if flat[i] ~= id then
    if age > live or age < -live then
      redis.call('HDEL', MEMBERS, flat[i])
    elseif not known[said] then
      known[said] = true
      others[#others + 1] = said
      keys[cjson.decode(said).digestKey] = true
    end
  end
end
redis.call('HSET', MEMBERS, id, string.format('%.0f', now) .. '|' .. text)

local key = redis.call('HGET', MARKER, 'digestKey')
-- The key of running processes stays; one that no process uses any more is replaced.
if mine.digestKey ~= '' and key ~= mine.digestKey and not (key and keys[key]) then
  key = mine.digestKey
  redis.call('HSET', MARKER, 'digestKey', key)
end
return { is_new and '1' or '0', key or '', others }
`,
);

export function membersKeys(prefix: string): [string, string] {
  return [`${prefix}:{members}`, `${prefix}:{members}:marker`];
}

export function readRegister(reply: unknown): Register {
  const [isNew, digestKey, others] = reply as [string, string, string[]];
  return { isNew: isNew === '1', digestKey, others: others.map((text) => JSON.parse(text) as Member) };
}

/** What follows from the announcements of the processes that share a store. */
export interface Agreement {
  /** The cold start of a new store: the longest lease of all processes, since any may have a write under way. */
  readonly coldStartMs: number;
  /** Lines of `tracked` whose writes another process forwards unchecked. These resources get no tag. */
  readonly untracked: readonly string[];
  /** The tokens in the store are digested by another key than this process has. */
  readonly refusesTokens: boolean;
  /** For people; empty when all agree. */
  readonly problems: readonly string[];
}

/** Pure: docs/decisions/store-state.md has the table. */
export function agree(mine: Member, { digestKey, others }: Register): Agreement {
  const problems: string[] = [];
  const leases = others.map(({ leaseMs }) => leaseMs).filter((leaseMs) => leaseMs > 0);
  const coldStartMs = leases.reduce((longest, leaseMs) => Math.max(longest, leaseMs), mine.leaseMs);
  if (mine.leaseMs > 0 && leases.some((leaseMs) => leaseMs !== mine.leaseMs)) {
    const all = [...new Set([mine.leaseMs, ...leases])].map((ms) => `${ms / 1000}s`).join(', ');
    problems.push(
      `entityTags.lease differs between replicas (${all}): the longest one counts for a new store`,
    );
  }
  const untracked = mine.tracked.filter((line) => others.some(({ tracked }) => !tracked.includes(line)));
  if (untracked.length > 0) {
    problems.push(
      `another replica does not track ${untracked.join(', ')} (entityTags.resources): there no tags are given out and writes get 503 until all do`,
    );
  }
  const refusesTokens = mine.digestKey !== '' && digestKey !== '' && digestKey !== mine.digestKey;
  if (refusesTokens) {
    problems.push(
      'refreshTokens.digestKey is another one than that of the replicas that were there before: refreshes get 503 until these have ended',
    );
  }
  const other = others.find(({ owner }) => owner !== mine.owner);
  if (other !== undefined) {
    problems.push(
      `another shop uses store.prefix: ${JSON.stringify(other.owner)}, and this is ${JSON.stringify(mine.owner)}. Give each shop a store.prefix of its own; if it is one shop, set the same publicUrl`,
    );
  }
  return { coldStartMs, untracked, refusesTokens, problems };
}
