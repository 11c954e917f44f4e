import { defineClaim, defineScript, type RedisScript } from '../redis/redis.ts';

/**
 * The claim protocol for Redis: `protocol.ts`, line by line. The claims of one turn share a script, the other operations of
 * it another one, and each is as if it ran alone after the one before it. KEYS: the epoch marker of the slot, the records.
 * ARGV begins with lease, cold start and longest read (microseconds). Every reply is one text of JSON, quicker to read than
 * a list: the epoch, the clock, the end of the cold start, the answers of the operations.
 *
 * The record is a hash: e(poch) g(eneration) t(ag) s(hop tag) ls (leases: token | until | tagged | tainted | sent,
 * each with a comma) w(anted until) sw (strangers wrote) o (turn of owners until, 0: none) q qg (indeterminate until, tagged) c(hanged at) l(ast seen) b (what was replaced), all of them always
 * there, and `v:` + variant -> fingerprint | at | fields.
 *
 * The identity of the data is the replication id, read inside the script: it changes with every restart and every
 * failover, at the very script that first meets the new primary. Redis propagates what a script writes, not the script.
 * After it stands the form of the records, 5: where two versions of this file share a store, each is new to the other,
 * and nothing is handed out until one of them is gone.
 *
 * Beyond `protocol.ts`, whose clock is never set: somebody may set Redis's clock back. A marker from the future is
 * another epoch, as if the store were new. A record from the future counts as changed now, and what it waits for is over
 * after the longest lease that can be configured; else it would wait for as long as the clock needs.
 */
const prelude = `
local LEASE, COLD_START, LONGEST = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local MAX_VARIANTS, MAX_LEASES, FIELDS, LONGEST_LEASE = 32, 64, 13, 600000000
local TURN, OWN_TURN = math.min(500000, math.floor(LEASE / 30)), math.floor(LEASE / 3)
local MARKER = KEYS[1]
-- Of the call that runs: its record's key, that record's expiry, and what stands there.
local RECORD, EXPIRY, record, indeterminate, leased

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') .. '/5'
end

local function int(number) return string.format('%.0f', number) end

local now = clock()
local id = replication_id()
local marker = redis.call('GET', MARKER)
local since = marker and string.sub(marker, 1, #id + 1) == id .. ':' and tonumber(string.sub(marker, #id + 2))
if not since or since > now then
  since = now
  marker = id .. ':' .. int(now)
  redis.call('SET', MARKER, marker)
end
local cold_start_until = since + COLD_START
local cold = now < cold_start_until

local function untag(r) r.tag, r.shop, r.variants_gone = '', '', true end

local function change(r, at)
  untag(r)
  r.generation = r.generation + 1
  r.changed = math.max(r.changed, at)
end

local function create()
  return { generation = now, tag = '', shop = '', leases = {}, wanted = 0, strangers_wrote = '0', turn = 0,
    indeterminate = 0, indeterminate_tagged = '0', changed = 0, last = '', replaced = '', variants_gone = true }
end

local function taint(r) for _, lease in ipairs(r.leases) do lease.tainted = '1' end end

local function find_lease(r, token)
  for i, lease in ipairs(r and r.leases or {}) do if lease.token == token then return i end end
end

local function read_leases(text)
  local leases = {}
  for token, until_, tagged, tainted, sent in string.gmatch(text, '([^|,]+)|(%d+)|(%d)|(%d)|(%d),') do
    leases[#leases + 1] = { token = token, until_ = tonumber(until_), tagged = tagged, tainted = tainted, sent = sent }
  end
  return leases
end

local function write_leases(leases)
  local text = {}
  for i, l in ipairs(leases) do
    text[i] = l.token .. '|' .. int(l.until_) .. '|' .. l.tagged .. '|' .. l.tainted .. '|' .. l.sent .. ','
  end
  return table.concat(text)
end

-- What a stranger leaves goes soon; but nobody makes a record's life shorter.
local function save(r)
  local left = redis.call('PTTL', RECORD)
  if r.variants_gone then redis.call('DEL', RECORD) end
  redis.call('HSET', RECORD, 'e', marker, 'g', int(r.generation), 't', r.tag, 's', r.shop, 'ls', write_leases(r.leases),
    'w', int(r.wanted), 'sw', r.strangers_wrote, 'o', int(r.turn), 'q', int(r.indeterminate), 'qg', r.indeterminate_tagged,
    'c', int(r.changed), 'l', r.last, 'b', r.replaced)
  redis.call('PEXPIRE', RECORD, math.max(left, EXPIRY))
end

local function come_back(r)
  r.changed = math.min(r.changed, now)
  r.wanted = math.min(r.wanted, now + TURN)
  r.turn = math.min(r.turn, now + OWN_TURN)
  for _, lease in ipairs(r.leases) do lease.until_ = math.min(lease.until_, now + LONGEST_LEASE) end
  r.indeterminate = math.min(r.indeterminate, now + LONGEST_LEASE)
  save(r)
end

local function latest(r)
  local latest_ = math.max(r.indeterminate, r.wanted, r.turn)
  for _, lease in ipairs(r.leases) do latest_ = math.max(latest_, lease.until_) end
  return latest_
end

local function load()
  local f = redis.call('HMGET', RECORD, 'e', 'g', 't', 's', 'ls', 'w', 'q', 'qg', 'c', 'l', 'b', 'o', 'sw')
  if f[1] ~= marker then return nil end
  local r = { generation = tonumber(f[2]), tag = f[3], shop = f[4], leases = read_leases(f[5]), wanted = tonumber(f[6]),
    indeterminate = tonumber(f[7]), turn = tonumber(f[12]), strangers_wrote = f[13], indeterminate_tagged = f[8], changed = tonumber(f[9]), last = f[10], replaced = f[11], variants_gone = false }
  if r.changed > now or latest(r) > now + LONGEST_LEASE then come_back(r) end
  for i = #r.leases, 1, -1 do
    if r.leases[i].until_ <= now then
      local gone = table.remove(r.leases, i)
      if gone.sent == '1' then change(r, gone.until_) end
    end
  end
  if r.indeterminate ~= 0 and r.indeterminate <= now then
    change(r, r.indeterminate)
    r.indeterminate, r.indeterminate_tagged = 0, '0'
  end
  return r
end

local function give_turn(r)
  if not r or r.strangers_wrote ~= '1' then return end
  if r.turn ~= 0 and now < r.turn + OWN_TURN then return end
  r.turn = now + OWN_TURN
  save(r)
end

local function open(key, expiry)
  RECORD, EXPIRY = key, tonumber(expiry)
  record = load()
  indeterminate = record ~= nil and record.indeterminate ~= 0
  leased = record ~= nil and #record.leases > 0
end

local function answer(...) return { ... } end

local function reply(answers) return cjson.encode({ marker, int(now), int(cold_start_until), answers }) end
`;

const lookUp = `
local variant = ...
local why = cold and 'cold-start' or indeterminate and 'indeterminate' or leased and 'lease' or ''
local generation = record and record.generation or 0
local known = why == '' and record and not record.variants_gone and variant ~= '' and redis.call('HGET', RECORD, 'v:' .. variant)
return answer(marker, int(now), why, int(generation), record and record.tag or '', known or '')
`;

const endRead = `
local stamp_epoch, stamp_generation, stamp_started, name, fingerprint, new_tag, shop, of_collection, fields, of_owner = ...
local variant = 'v:' .. name

local function unchanged()
  if stamp_epoch ~= marker or now - stamp_started > LONGEST or stamp_started > now then return false end
  if stamp_generation ~= '' then return tonumber(stamp_generation) == (record and record.generation or 0) end
  return stamp_started > (record and record.changed or 0) and stamp_started > cold_start_until
end

if cold or indeterminate then return answer('') end
if not unchanged() then
  if of_owner then give_turn(record) end
  return answer('')
end
local known = record and not record.variants_gone and redis.call('HGET', RECORD, variant)
local differs = known and fingerprint ~= '' and string.sub(known, 1, #fingerprint + 1) ~= fingerprint .. '|'
local same = known and not differs and '1' or '0'
if fingerprint == '' or leased then return answer(record and record.tag or '', same, '0') end

local entry = fingerprint .. '|' .. int(stamp_started) .. '|' .. fields
local r = record or create()
local seen = string.sub(name .. '|' .. fingerprint, 1, 60)
local replaced = r.replaced == seen and '1' or '0'
local news = r.last ~= seen
r.last, r.replaced = seen, ''
if r.tag == '' then
  r.tag, r.shop, r.variants_gone = new_tag, shop, true
  save(r)
  redis.call('HSET', RECORD, variant, entry)
  return answer(new_tag, '0', replaced)
end
if differs then
  r.generation, r.changed = r.generation + 1, now
  r.tag, r.shop, r.variants_gone = new_tag, shop, true
  save(r)
  redis.call('HSET', RECORD, variant, entry)
  return answer(new_tag, '0', replaced)
end
if of_collection and r.shop ~= '' then shop = r.shop end
local full = not known and redis.call('HLEN', RECORD) >= FIELDS + MAX_VARIANTS
if not known or news or fields ~= '' or shop ~= r.shop then
  r.shop, r.variants_gone = shop, full
  save(r)
  redis.call('HSET', RECORD, variant, entry)
elseif redis.call('PTTL', RECORD) < EXPIRY / 2 then
  redis.call('PEXPIRE', RECORD, EXPIRY)
end
return answer(r.tag, same, replaced)
`;

/** `tagged` = '1': one of the tags has to be current; 'o': a stranger's write without one. */
const claim = `
local token, send_by, tagged, of_owner, tags = ...
if cold then return answer('cold-start', int(cold_start_until - now)) end
if tagged == '1' then
  local current = false
  for _, tag in ipairs(tags) do current = current or (record ~= nil and record.tag ~= '' and tag == record.tag) end
  if not current then
    if indeterminate then return answer('indeterminate', int(record.indeterminate - now)) end
    if of_owner then give_turn(record) end
    return answer('not-current', '0')
  end
end
local r = record or create()
if tagged == 'o' then
  local busy_until = math.max(r.wanted, r.turn)
  for _, lease in ipairs(r.leases) do
    if lease.tagged == '1' then busy_until = math.max(busy_until, lease.until_) end
  end
  if busy_until > now then return answer('busy', int(busy_until - now)) end
  if r.indeterminate_tagged == '1' then return answer('indeterminate', int(r.indeterminate - now)) end
  return answer('granted', '0', '')
end
local tagged_runs, busy_until = false, r.wanted
for _, lease in ipairs(r.leases) do
  tagged_runs, busy_until = tagged_runs or lease.tagged == '1', math.max(busy_until, lease.until_)
end
local open_to_others = r.wanted <= now and #r.leases < MAX_LEASES and not tagged_runs
if tagged == '1' and leased or tagged ~= '1' and not open_to_others then
  if tagged == '1' and not tagged_runs then
    r.wanted = now + TURN
    save(r)
  end
  return answer('busy', int(busy_until - now))
end
if indeterminate and (tagged == '1' or record.indeterminate_tagged == '1') then return answer('indeterminate', int(record.indeterminate - now)) end
taint(r)
if tagged == '1' then r.wanted, r.turn = 0, 0 end
r.leases[#r.leases + 1] = { token = token, until_ = now + send_by, tagged = tagged,
  tainted = (indeterminate or leased) and '1' or '0', sent = '0' }
save(r)
return answer('granted', '0', r.shop)
`;

const markSent = `
local token, send_by = ...
local own = find_lease(record, token)
if not own then return answer('0') end
local lease = record.leases[own]
if lease.sent ~= '1' then
  lease.until_, lease.sent = lease.until_ - send_by + LEASE, '1'
  save(record)
end
return answer('1')
`;

const end = `
local token, tagged, outcome, new_tag, shop = ...
local changes_nothing = outcome == 'unsent' or outcome == 'refused'

local function mark_indeterminate(r, until_, tagged_)
  r.indeterminate = math.max(r.indeterminate, until_)
  if tagged_ == '1' then r.indeterminate_tagged = '1' end
end

local own = find_lease(record, token)
if not own then
  if changes_nothing then return answer('') end
  local r = record or create()
  change(r, now)
  taint(r)
  if tagged == 'o' then r.strangers_wrote = '1' end
  if outcome == 'unknown' then mark_indeterminate(r, now + LEASE, tagged) end
  save(r)
  return answer('')
end

local r = record
local lease = table.remove(r.leases, own)
if changes_nothing then
  -- Made for this claim, it says no more than none: ids that nobody has must not fill the store.
  local says_nothing = r.tag == '' and r.changed == 0 and r.indeterminate == 0 and #r.leases == 0
  if says_nothing then redis.call('DEL', RECORD) else save(r) end
  return answer('')
end
change(r, now)
if outcome == 'unknown' then mark_indeterminate(r, lease.until_, lease.tagged) end
if outcome == 'applied' and lease.tainted ~= '1' then
  r.replaced = r.last
  if new_tag ~= '' then r.tag, r.shop = new_tag, shop end
end
save(r)
return answer(r.tag)
`;

/**
 * What one process asks of a slot in one turn: KEYS[2] and on are the records, one for each operation; ARGV[4] holds the
 * operations as JSON: name, expiry (milliseconds), what it takes. What a broken record is to blame for is its own caller's (`false`); any other
 * error, such as the READONLY of a replica, is everybody's. `run`: what the named operation does.
 */
const gathered = (run: string) => `
-- One function, and no table of them: Redis makes all that stands here anew for each call.
local function run(key, name, expiry, ...)
  open(key, expiry)
  ${run}
end

local answers = {}
for i, operation in ipairs(cjson.decode(ARGV[4])) do
  local is_done, given = pcall(run, KEYS[i + 1], unpack(operation))
  if not is_done then
    local text = type(given) == 'table' and given.err or given
    local function says(part) return string.find(text, part, 1, true) end
    if not (says('WRONGTYPE') or says('attempt to ') or says('bad argument ')) then error(given) end
  end
  answers[i] = is_done and given
end
return reply(answers)
`;

const operations = gathered(`
  if name == 'lookUp' then ${lookUp}
  elseif name == 'endRead' then ${endRead}
  elseif name == 'markSent' then ${markSent}
  else ${end} end
`);

export interface TagScripts {
  /** All but claims. */
  readonly operations: RedisScript;
  readonly claims: RedisScript;
}

/** The scripts; `edit` is for tests, which break one line of them and look for the update that gets lost. */
export function buildTagScripts(edit: (lua: string) => string = (lua) => lua): TagScripts {
  return {
    operations: { ...defineScript('tags.operations', edit(prelude + operations)), isGathered: true },
    claims: { ...defineClaim('tags.claims', edit(prelude + gathered(claim))), isGathered: true },
  };
}
