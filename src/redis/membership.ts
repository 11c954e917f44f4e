import { randomUUID } from 'node:crypto';
import { singleFlight } from '../lib/eventually.ts';
import { isolateLate, isolated } from '../lib/faults.ts';
import { type RedisFaultWord, RedisUnavailable } from './faults.ts';
import { type Redis, type RedisCalls, defineScript } from './redis.ts';

/** The oldest and the newest form of records that a version reads and writes (docs/decisions/store-state.md). */
export interface RecordForms {
  readonly oldest: number;
  readonly newest: number;
}

/** The forms of this version. A new form raises `newest`; then `oldest` is one less. */
export const recordForms: RecordForms = { oldest: 6, newest: 6 };

/** What a process announces to the others that share its part of the store. */
export interface Member {
  readonly version: string;
  readonly forms: RecordForms;
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
  /** The form in which records are written. */
  readonly form: number;
  /** Other processes that may have a write under way: announced within the last `memberTtlMs` plus their lease. Equal ones count once. */
  readonly others: readonly Member[];
}

/** How often a process announces itself. */
const announceEveryMs = 2_000;
/** A process not announced for so long counts as ended; its last writes may take effect for one more lease. Exported for its tests. */
export const memberTtlMs = 10_000;

/** Records stay in the older form for so long after its last process ended, so that a rollback finds nothing it cannot read. */
const rollbackMs = 86_400_000;

// KEYS members, marker; ARGV id, own text, liveMs, rollbackMs
const announceScript = defineScript(
  'announce-member',
  `
local MEMBERS, MARKER = KEYS[1], KEYS[2]
local id, text, live, rollback = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local own = cjson.decode(text)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is_new = redis.call('EXISTS', MEMBERS) == 0

local form, form_seen = unpack(redis.call('HMGET', MARKER, 'form', 'formSeen'))
form = tonumber(form)
local lowest, is_used = own.forms.newest, false
local function hear_forms(forms)
  lowest = math.min(lowest, forms.newest)
  is_used = is_used or form and forms.oldest <= form and form <= forms.newest
end
hear_forms(own.forms)

local others, known, keys = {}, {}, {}
local flat = redis.call('HGETALL', MEMBERS)
for i = 1, #flat, 2 do
  local seen, said = string.match(flat[i + 1], '^(%d+)|(.*)$')
  local age = now - tonumber(seen)
  -- A write of a process that was killed may take effect for as long as the last lease that it could take.
  local lease = tonumber(string.match(said, '"leaseMs":(%d+)') or 0)
  if flat[i] ~= id and (age > live + lease or age < -live) then
    redis.call('HDEL', MEMBERS, flat[i])
  elseif flat[i] ~= id then
    if not known[said] then others[#others + 1] = said end
    known[said] = known[said] or cjson.decode(said)
    if age <= live then keys[known[said].digestKey] = true end
    if age <= live and known[said].forms then hear_forms(known[said].forms) end
  end
end
redis.call('HSET', MEMBERS, id, string.format('%.0f', now) .. '|' .. text)

local key = redis.call('HGET', MARKER, 'digestKey')
-- The key of running processes stays; one that no process uses any more is replaced.
if own.digestKey ~= '' and key ~= own.digestKey and not (key and keys[key]) then
  key = own.digestKey
  redis.call('HSET', MARKER, 'digestKey', key)
end

-- The form of running processes stays; a newer one follows when the older one was not seen for long enough.
local is_wanted = lowest <= (form or 0)
if not is_used or not is_wanted and now - tonumber(form_seen or now) >= rollback then form = lowest end
if not is_used or is_wanted or not form_seen then form_seen = string.format('%.0f', now) end
redis.call('HSET', MARKER, 'form', form, 'formSeen', form_seen)
return { is_new and '1' or '0', key or '', others, form }
`,
);

export function membersKeys(prefix: string): [string, string] {
  return [`${prefix}:{members}`, `${prefix}:{members}:marker`];
}

/** Exported for its tests. */
export function readRegister(reply: unknown): Register {
  const [isNew, digestKey, others, form] = reply as [string, string, string[], number];
  return { isNew: isNew === '1', digestKey, form, others: others.map((text) => JSON.parse(text) as Member) };
}

/** What follows from the announcements of the processes that share a store. */
interface Agreement {
  /** The cold start of a new store: the longest lease of all processes, since any may have a write under way. */
  readonly coldStartMs: number;
  /** Lines of `tracked` whose writes another process forwards unchecked. These resources get no tag. */
  readonly untracked: readonly string[];
  /** This process forwards unchecked what another one tracks. */
  readonly passesBy: boolean;
  /** The tokens in the store are digested by another key than this process has. */
  readonly refusesTokens: boolean;
  /** The records in the store have a form that this version does not know. */
  readonly refusesAll: boolean;
  /** The form in which records are written. */
  readonly form: number;
  /** For people; empty when all agree. */
  readonly problems: readonly string[];
}

/** Pure: docs/decisions/store-state.md has the table. Exported for its tests. */
export function agree(own: Member, { digestKey, form, others }: Register): Agreement {
  const foreign = versionsWithout(own, form, others);
  const problems = foreign === undefined ? [] : [foreign];
  const leases = others.map(({ leaseMs }) => leaseMs).filter((leaseMs) => leaseMs > 0);
  const coldStartMs = leases.reduce((longest, leaseMs) => Math.max(longest, leaseMs), own.leaseMs);
  if (own.leaseMs > 0 && leases.some((leaseMs) => leaseMs !== own.leaseMs)) {
    const all = [...new Set([own.leaseMs, ...leases])].map((ms) => `${ms / 1000}s`).join(', ');
    problems.push(
      `entityTags.lease differs between replicas (${all}): the longest one counts for a new store`,
    );
  }
  const untracked = own.tracked.filter((line) => others.some(({ tracked }) => !tracked.includes(line)));
  if (untracked.length > 0) {
    problems.push(
      `another replica does not track ${untracked.join(', ')} (entityTags.resources): these resources get no tags and their writes 503, until all replicas track them`,
    );
  }
  const passesBy = others.some(({ tracked }) => tracked.some((line) => !own.tracked.includes(line)));
  const refusesTokens = own.digestKey !== '' && digestKey !== '' && digestKey !== own.digestKey;
  if (refusesTokens) {
    problems.push(
      'refreshTokens.digestKey differs from that of replicas that already run: refreshes get 503 until those have ended',
    );
  }
  const other = others.find(({ owner }) => owner !== own.owner);
  if (other !== undefined) {
    problems.push(
      `another shop uses store.prefix: ${JSON.stringify(other.owner)}, and this is ${JSON.stringify(own.owner)}. Give each shop a store.prefix of its own; if it is one shop, set the same publicUrl`,
    );
  }
  const refusesAll = foreign !== undefined;
  return { coldStartMs, untracked, passesBy, refusesTokens, refusesAll, form, problems };
}

/** Describes the versions that know the form in force. Undefined: this version knows it, too. */
function versionsWithout(
  { version, forms }: Member,
  form: number,
  others: readonly Member[],
): string | undefined {
  const knows = ({ oldest, newest }: RecordForms) => oldest <= form && form <= newest;
  if (knows(forms)) return undefined;
  const foreign = others.filter((other) => knows(other.forms));
  const versions = [...new Set(foreign.map((other) => other.version))].join(', ');
  return `another version of shopward shares this store: ${versions}, and this is ${version}. Its records have a form that this version does not know: no tags are given out, tracked writes and refreshes get 503 here until it has ended`;
}

interface MembershipOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly member: Member;
  /** Called when the problems have changed. */
  readonly onProblems: (problems: readonly string[]) => void;
  /** Called when the store is new or was emptied: no process was announced in it. */
  readonly onNewStore: () => void;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
}

/** How long an agreement is valid: less than the others remember this process. By its end each knows this one, or refuses. */
export const validMs = memberTtlMs - announceEveryMs;

/**
 * Announces this process and its settings in the store every two seconds, and reads those of the others. An agreement expires
 * before the others forget this process: one that was suspended, or cut off, announces itself again before it uses the store.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #id = randomUUID();
  readonly #text: string;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #agreement: Agreement | undefined;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  /** The longest lease that any process has had since the start of this one: a write with it may still be under way. */
  #longestColdStartMs: number;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#text = JSON.stringify(options.member);
    this.#now = options.now ?? (() => performance.now());
    this.#longestColdStartMs = options.member.leaseMs;
    const announce = isolated(() => isolateLate(this.announce().catch(() => {})));
    this.#timer = setInterval(announce, announceEveryMs).unref();
  }

  /** Announces this process once; calls meanwhile get the same promise. Rejects with `RedisUnavailable`. */
  readonly announce = singleFlight(() => this.#announceOnce());

  /** Undefined before the store was reached. */
  agreement(): Agreement | undefined {
    return this.#agreement;
  }

  /** For people: the list of processes could not be read for so long that the last agreement has expired. */
  overdue(): readonly string[] {
    if (this.#now() < this.#validUntilMs) return [];
    const [key] = membersKeys(this.#options.prefix);
    return [`the key ${key} cannot be read: tracked writes and refreshes get 503; delete it in Redis`];
  }

  /** Milliseconds of a cold start: at least two announcements, so that the leases of all others are known before it ends. */
  coldStartMs(): number {
    return Math.max(this.#longestColdStartMs, announceEveryMs * 2);
  }

  refusesTags(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesAll }) => refusesAll);
  }

  /** The form in which records are written, as far as this process knows. */
  form(): number {
    return this.#agreement?.form ?? recordForms.oldest;
  }

  /** Whether another process lacks this line of `tracked`. */
  isUntracked(line: string): boolean {
    return this.#agreement?.untracked.includes(line) ?? true;
  }

  refusesTokens(): RedisFaultWord | undefined {
    return this.#refuses(({ refusesTokens, refusesAll }) => refusesTokens || refusesAll);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #refuses(does: (agreement: Agreement) => boolean): RedisFaultWord | undefined {
    const agreement = this.#agreement;
    if (agreement === undefined || this.overdue().length > 0) {
      this.announce().catch(() => {});
      return 'settings';
    }
    return does(agreement) ? 'settings' : undefined;
  }

  async #announceOnce(): Promise<void> {
    const { redis, prefix, member, onProblems, onNewStore } = this.#options;
    const askedMs = this.#now();
    const reply = await redis.runScript(announceScript, membersKeys(prefix), [
      this.#id,
      this.#text,
      memberTtlMs,
      rollbackMs,
    ]);
    const register = readRegister(reply);
    const before = this.#agreement;
    const agreement = agree(member, register);
    this.#agreement = agreement;
    this.#validUntilMs = askedMs + validMs;
    this.#longestColdStartMs = Math.max(this.#longestColdStartMs, agreement.coldStartMs);
    if (before?.problems.join() !== agreement.problems.join() && (before ?? agreement).problems.length > 0) {
      onProblems(agreement.problems);
    }
    if (register.isNew) onNewStore();
  }
}

/** The store for one feature: its calls are rejected while `refusal` gives a word. */
export function guardRedis(redis: RedisCalls, refusal: () => RedisFaultWord | undefined): RedisCalls {
  const guard = <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    ((...args) => {
      const word = refusal();
      return word === undefined ? call.apply(redis, args) : Promise.reject(new RedisUnavailable(word));
    }) as (...args: Args) => Promise<T>;
  const { kind, command, runScript, runClaim } = redis;
  return { kind, command: guard(command), runScript: guard(runScript), runClaim: guard(runClaim) };
}
