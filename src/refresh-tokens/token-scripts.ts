import type { RedisScript } from '../redis/redis.ts';
import { defineClaim, defineScript } from '../redis/script.ts';

/**
 * The steps of `token-record.ts` for Redis, one script per operation, and the generations of subjects.
 *
 * A token is a hash: s(ubject) g(eneration) i(ssued at) e(xpires at) u(sed at) c(laim) cu (claimed until), `n:` + subject
 * -> when (a settled note), `p:` + operation -> when:subject (a pending one); times are milliseconds. Without `e` it is
 * known by claim or note only, and Redis' own time to live ends it. KEYS: token, index by expiry; ARGV begins with
 * retention (milliseconds or `keep`), default lifetime, digest.
 */
const prelude = `
local TOKEN, EXPIRY = KEYS[1], KEYS[2]
local RETENTION, LIFETIME, DIGEST = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local function int(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

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

local function state()
  if f.u then return 'used' end
  if f.s and notes()[f.s] then return 'revoked' end
  if f.e and tonumber(f.e) <= now then return 'expired' end
  if f.c and tonumber(f.cu) > now then return 'in-exchange' end
  return 'valid'
end
`;

const operations = {
  // ARGV op, hold
  claim: `
local why = state()
if why == 'in-exchange' then return {why, int(tonumber(f.cu) - now)} end
if why ~= 'valid' then return {why} end
local hold = tonumber(ARGV[5])
set('c', ARGV[4])
set('cu', int(now + hold))
if not f.e then outlive(hold) end
local answer = {'granted', f.s or '', f.g or '0'}
if not f.s then for who in pairs(notes()) do answer[#answer + 1] = who end end
return answer
`,
  // ARGV op
  release: `
if f.c == ARGV[4] then redis.call('HDEL', TOKEN, 'c', 'cu') end
return {}
`,
  // ARGV owner or empty
  markUsed: `
if not f.u then set('u', int(now)) end
if not f.s and ARGV[4] ~= '' then set('s', ARGV[4]) end
if not f.e then
  set('i', int(now))
  set('e', int(now + LIFETIME))
end
redis.call('HDEL', TOKEN, 'c', 'cu')
keep()
return {}
`,
  // ARGV subject or empty, generation, lifetime
  record: `
if f.u then return {} end
local expires = now + tonumber(ARGV[6])
if f.e then
  set('e', int(math.max(expires, tonumber(f.e))))
else
  set('i', int(now))
  set('e', int(expires))
  set('g', ARGV[5])
  if not f.s and ARGV[4] ~= '' then set('s', ARGV[4]) end
end
keep()
return {}
`,
  // ARGV by, op
  noteRevocation: `
if f.s and f.s ~= ARGV[4] then return {'foreign'} end
set('p:' .. ARGV[5], int(now) .. ':' .. ARGV[4])
if not f.e then outlive(LIFETIME) end
return {'noted'}
`,
  // ARGV by, op, stands
  settleRevocation: `
local pending = f['p:' .. ARGV[5]]
redis.call('HDEL', TOKEN, 'p:' .. ARGV[5])
if ARGV[6] == '1' then
  local at = pending and string.match(pending, '^(%d+):') or int(now)
  redis.call('HSETNX', TOKEN, 'n:' .. ARGV[4], at)
  if not f.e then outlive(LIFETIME) end
end
return {}
`,
  look: `
if not f.e then return {} end
local at = f.s and notes()[f.s]
return {state(), f.s or '', f.g or '0', f.i, f.e, f.u or '', at and int(at) or ''}
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
 * A subject is a hash: g (settled generation), `p:` + operation -> a pending one; and an index of its tokens by expiry.
 * KEYS: subject, index; ARGV begins with retention, default lifetime.
 */
const subjectPrelude = `
local SUBJECT, INDEX = KEYS[1], KEYS[2]
local RETENTION, LIFETIME = ARGV[1], tonumber(ARGV[2])

local function int(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

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
return int(generation())
`,
  generation: 'return int(generation())',
  // ARGV op
  noteAll: 'return int(note(ARGV[3]))',
  // ARGV op, stands
  settleAll: `
local pending = tonumber(redis.call('HGET', SUBJECT, 'p:' .. ARGV[3]) or '')
if ARGV[4] == '1' then
  pending = pending or note(ARGV[3])
  local settled = tonumber(redis.call('HGET', SUBJECT, 'g') or '0')
  redis.call('HSET', SUBJECT, 'g', int(math.max(settled, pending)))
end
redis.call('HDEL', SUBJECT, 'p:' .. ARGV[3])
return {}
`,
} as const;

export type TokenScripts = Readonly<
  Record<keyof typeof operations | keyof typeof subjectOperations, RedisScript>
>;

/** `edit` lets tests break a script on purpose. */
export function buildTokenScripts(edit: (lua: string, name: string) => string = (lua) => lua): TokenScripts {
  const build = (before: string, bodies: Readonly<Record<string, string>>) =>
    Object.entries(bodies).map(([name, lua]) => [
      name,
      (name === 'claim' ? defineClaim : defineScript)(`token-${name}`, edit(before + lua, name)),
    ]);
  return Object.fromEntries([
    ...build(prelude, operations),
    ...build(subjectPrelude, subjectOperations),
  ]) as TokenScripts;
}
