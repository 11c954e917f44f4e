import { defineClaim, defineScript, type RedisScript } from '../redis/redis.ts';
import { holder } from './token-store.ts';

/** Reads Redis' own clock: `micros`, and `now` in milliseconds. */
const clock = `
local function int(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
`;

/**
 * The steps of `protocol.ts` for Redis, one script for each operation; generations of subjects; ended families.
 *
 * A token is a hash: s(ubject) g(eneration; left out: 0) f(amily) i(ssued at) e(xpires at) u(sed at) c(laim) cu (claimed
 * until) ci (indeterminate), `n:` + subject -> when (a settled note), `p:` + operation -> when:subject (a pending one);
 * times are milliseconds. Without `e` it is a stray, the record of an unknown token, and expires by Redis' own PEXPIRE.
 *
 * The book of strays is a hash, one in each bucket: until, all, subject -> how many. A sealed answer is a string: until:sealed.
 * KEYS: token, index by expiry, sealed answer, book. ARGV begins with retention (milliseconds or `keep`), default lifetime,
 * milliseconds that a stray lives, the book's limit for a subject and in all, digest.
 */
const prelude = `
local TOKEN, EXPIRY, ANSWER, BOOK = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local RETENTION, LIFETIME, STRAY = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local DIGEST = ARGV[6]
local HOLDER = '${Buffer.from(holder, 'hex').toString('base64url')}'

local f = {}
local flat = redis.call('HGETALL', TOKEN)
for i = 1, #flat, 2 do f[flat[i]] = flat[i + 1] end

local function set(name, value)
  f[name] = value
  redis.call('HSET', TOKEN, name, value)
end

-- for a record without expiry
local function outlive(ms)
  if redis.call('PTTL', TOKEN) < ms then redis.call('PEXPIRE', TOKEN, int(ms)) end
end

-- for a record with expiry: index, retention
local function keep()
  redis.call('ZADD', EXPIRY, f.e, DIGEST)
  if RETENTION == 'keep' then
    redis.call('PERSIST', TOKEN)
  else
    redis.call('PEXPIREAT', TOKEN, int(tonumber(f.e) + tonumber(RETENTION)))
    redis.call('ZREMRANGEBYSCORE', EXPIRY, '-inf', '(' .. int(now - tonumber(RETENTION)))
  end
end

-- one more record about nothing, made by who; '': by a refresh
local function admit(who)
  local till = tonumber(redis.call('HGET', BOOK, 'until') or '0')
  if till <= now then
    redis.call('DEL', BOOK)
    redis.call('HSET', BOOK, 'until', int(now + STRAY))
    redis.call('PEXPIRE', BOOK, int(STRAY))
  end
  local own = tonumber(redis.call('HGET', BOOK, who) or '0')
  local all = tonumber(redis.call('HGET', BOOK, 'all') or '0')
  if all >= tonumber(ARGV[5]) or (who ~= '' and own >= tonumber(ARGV[4])) then return false end
  redis.call('HINCRBY', BOOK, 'all', 1)
  if who ~= '' then redis.call('HINCRBY', BOOK, who, 1) end
  return true
end

-- who has noted a revocation -> when first
local function notes()
  local by = {}
  for name, value in pairs(f) do
    local kind = string.sub(name, 1, 2)
    local who, at
    if kind == 'n:' then who, at = string.sub(name, 3), tonumber(value)
    elseif kind == 'p:' then
      at, who = string.match(value, '^(%d+):(.*)$')
      at = tonumber(at)
    end
    if who and at < (by[who] or math.huge) then by[who] = at end
  end
  return by
end

-- when it was revoked: by its own subject, or by whoever has shown it
local function revoked()
  local by = notes()
  return math.min(f.s and by[f.s] or math.huge, by[HOLDER] or math.huge)
end

local function state()
  if f.u then return 'used' end
  if revoked() < math.huge then return 'revoked' end
  if f.e and tonumber(f.e) <= now then return 'expired' end
  if f.c and tonumber(f.cu) > now then return 'in-exchange' end
  return 'valid'
end
`;

const operations = {
  // ARGV op, hold
  claim: `
local why = state()
if why == 'used' then
  local till, sealed = string.match(redis.call('GET', ANSWER) or '', '^(%d+):(.*)$')
  if not till or tonumber(till) <= now then sealed = '' end
  local lifetime = f.e and int(tonumber(f.e) - tonumber(f.i)) or '0'
  return {why, f.s or '', f.g or '0', f.f or '', lifetime, int(now - tonumber(f.u)), sealed}
end
if why == 'in-exchange' then return {why, int(tonumber(f.cu) - now), f.ci or '0'} end
if why ~= 'valid' then return {why} end
local hold = tonumber(ARGV[8])
set('c', ARGV[7])
set('cu', int(now + hold))
redis.call('HDEL', TOKEN, 'ci')
if not f.e then outlive(hold) end
local answer = {'granted', f.s or '', f.g or '0', f.f or '', f.e and '1' or '0'}
if not f.s then for who in pairs(notes()) do answer[#answer + 1] = who end end
return answer
`,
  // ARGV op, hold
  confirm: `
if state() ~= 'in-exchange' or f.c ~= ARGV[7] then return {'lost'} end
local hold = tonumber(ARGV[8])
set('cu', int(now + hold))
if not f.e then outlive(hold) end
return {'confirmed'}
`,
  // ARGV op
  release: `
if f.c == ARGV[7] then redis.call('HDEL', TOKEN, 'c', 'cu', 'ci') end
return {}
`,
  // ARGV op
  markIndeterminate: `
if f.c == ARGV[7] then set('ci', '1') end
return {}
`,
  // ARGV owner or empty, family, proven, sealed answer or empty, leeway
  markUsed: `
if not f.e and not f.u and ARGV[9] ~= '1' and not admit('') then return {'full'} end
if not f.u then set('u', int(now)) end
if not f.s and ARGV[7] ~= '' then set('s', ARGV[7]) end
if not f.f then set('f', ARGV[8]) end
if not f.e and ARGV[9] == '1' then
  set('i', int(now))
  set('e', int(now + LIFETIME))
end
redis.call('HDEL', TOKEN, 'c', 'cu', 'ci')
if ARGV[10] ~= '' then
  local leeway = tonumber(ARGV[11])
  redis.call('SET', ANSWER, int(now + leeway) .. ':' .. ARGV[10], 'PX', int(leeway))
end
if f.e then keep() else outlive(STRAY) end
return {f.f}
`,
  // ARGV subject or empty, generation, family, lifetime
  record: `
if f.u then return {} end
local expires = now + tonumber(ARGV[10])
if f.e then
  set('e', int(math.max(expires, tonumber(f.e))))
else
  set('i', int(now))
  set('e', int(expires))
  if ARGV[8] ~= '0' then set('g', ARGV[8]) end
  set('f', ARGV[9])
  if not f.s and ARGV[7] ~= '' then set('s', ARGV[7]) end
end
keep()
return {}
`,
  // ARGV by, op
  noteRevocation: `
if f.s and f.s ~= ARGV[7] and ARGV[7] ~= HOLDER then return {'foreign'} end
if not f.e and not f['n:' .. ARGV[7]] and not admit(ARGV[7]) then return {'full'} end
set('p:' .. ARGV[8], int(now) .. ':' .. ARGV[7])
if not f.e then outlive(STRAY) end
return {'noted'}
`,
  // ARGV by, op, stands
  settleRevocation: `
local pending = f['p:' .. ARGV[8]]
redis.call('HDEL', TOKEN, 'p:' .. ARGV[8])
if ARGV[9] == '1' then
  local at = pending and string.match(pending, '^(%d+):') or int(now)
  redis.call('HSETNX', TOKEN, 'n:' .. ARGV[7], at)
  if not f.e then outlive(STRAY) end
end
return {}
`,
  look: `
if not f.e then return {} end
local at = revoked()
return {state(), f.s or '', f.g or '0', f.f or '', f.i, f.e, f.u or '', at < math.huge and int(at) or ''}
`,
  purge: `
if f.e and tonumber(f.e) > now then return {'0'} end
redis.call('ZREM', EXPIRY, DIGEST)
if not f.e then return {'0'} end
redis.call('DEL', TOKEN)
return {'1', f.s or ''}
`,
} as const;

/**
 * A subject is a hash: g (settled generation), `p:` + operation -> a pending one; with an index of its tokens by expiry.
 * KEYS: subject, index. ARGV begins with retention, default lifetime.
 */
const subjectPrelude = `
local SUBJECT, INDEX = KEYS[1], KEYS[2]
local RETENTION, LIFETIME = ARGV[1], tonumber(ARGV[2])

local function generation()
  local greatest = 0
  local flat = redis.call('HGETALL', SUBJECT)
  for i = 2, #flat, 2 do greatest = math.max(greatest, tonumber(flat[i])) end
  return greatest
end

-- both must outlive every token of the subject
local function outlive(ms)
  for _, key in ipairs({SUBJECT, INDEX}) do
    if RETENTION == 'keep' then redis.call('PERSIST', key)
    else
      local wanted = math.max(ms + tonumber(RETENTION), redis.call('PTTL', INDEX))
      if redis.call('PTTL', key) < wanted then redis.call('PEXPIRE', key, int(wanted)) end
    end
  end
end

local function note(op)
  local noted = math.max(generation() + 1, micros)
  redis.call('HSET', SUBJECT, 'p:' .. op, int(noted))
  outlive(LIFETIME)
  return noted
end
`;

const subjectOperations = {
  // ARGV digest, lifetime
  add: `
redis.call('ZADD', INDEX, int(now + tonumber(ARGV[4])), ARGV[3])
if RETENTION ~= 'keep' then
  redis.call('ZREMRANGEBYSCORE', INDEX, '-inf', '(' .. int(now - tonumber(RETENTION)))
end
outlive(tonumber(ARGV[4]))
return {int(generation()), int(micros)}
`,
  generation: 'return {int(generation())}',
  // ARGV op
  noteAll: 'return {int(note(ARGV[3]))}',
  // ARGV op, noted generation, stands
  settleAll: `
redis.call('HDEL', SUBJECT, 'p:' .. ARGV[3])
if ARGV[5] == '1' then
  local settled = tonumber(redis.call('HGET', SUBJECT, 'g') or '0')
  redis.call('HSET', SUBJECT, 'g', int(math.max(settled, tonumber(ARGV[4]))))
  outlive(LIFETIME)
end
return {}
`,
} as const;

/** An ended family is a string: when it ended. KEYS: family. ARGV begins with retention. */
const familyPrelude = `
local FAMILY, RETENTION = KEYS[1], ARGV[1]
`;

const familyOperations = {
  // ARGV default lifetime, lifetime of the token that was replayed
  endFamily: `
redis.call('SET', FAMILY, int(now), 'NX')
if RETENTION ~= 'keep' then
  local ms = math.max(tonumber(ARGV[2]), tonumber(ARGV[3])) + tonumber(RETENTION)
  if redis.call('PTTL', FAMILY) < ms then redis.call('PEXPIRE', FAMILY, int(ms)) end
end
return {}
`,
  familyEnd: "return {redis.call('GET', FAMILY) or ''}",
} as const;

export type TokenScripts = Readonly<
  Record<
    keyof typeof operations | keyof typeof subjectOperations | keyof typeof familyOperations,
    RedisScript
  >
>;

/** The scripts that take something for their caller: they change nothing once the caller has been answered (`defineClaim`). */
const claims: ReadonlySet<string> = new Set(['claim', 'confirm'] satisfies (keyof TokenScripts)[]);

/** `edit` lets tests break a script on purpose. */
export function buildTokenScripts(edit: (lua: string, name: string) => string = (lua) => lua): TokenScripts {
  const build = (before: string, bodies: Readonly<Record<string, string>>) =>
    Object.entries(bodies).map(([name, lua]) => [
      name,
      (claims.has(name) ? defineClaim : defineScript)(`token-${name}`, edit(clock + before + lua, name)),
    ]);
  return Object.fromEntries([
    ...build(prelude, operations),
    ...build(subjectPrelude, subjectOperations),
    ...build(familyPrelude, familyOperations),
  ]) as TokenScripts;
}
