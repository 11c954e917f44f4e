import { type RecordForms, recordForms } from '../redis/membership.ts';
import { type ClaimScript, defineClaim, defineScript, type RedisScript } from '../redis/redis.ts';

/**
 * The claim protocol for Redis: `protocol.ts`, line by line. The claims of one tick run in one script, its other operations
 * in another; each runs as if it were alone, after the one before it. KEYS: the epoch marker of the slot, the records, one
 * for each operation. ARGV: lease, cold start and longest read (microseconds), the form of records to write, the operations.
 * An operation is its name, its record's expiry (milliseconds) and its arguments, each with a newline after it. The reply is
 * lines: the epoch, the clock, the end of the cold start, then the answers, whose fields are separated by tabs; `!` for a
 * broken record. Such texts cost less than JSON on either side. No field contains a newline, a tab or, in a list, a comma.
 *
 * The record is a hash: e(poch) t(ag) s(hop tag) ls (leases: token | until | tagged | tainted, each with a comma) w(anted
 * until) a(nonymous wrote) p(riority until, 0: none) q qt (indeterminate until, tagged) c(hanged at), all of them always
 * there, r(eplaced at) of a guarded collection, and `v:` + variant -> fingerprint and `|`.
 *
 * The identity of the data is the replication id, read inside the script: it changes with every restart and every failover,
 * and the first script on the new primary already sees it. Redis propagates what a script writes, not the script. The form of
 * the records follows the id, in the marker and in each record (docs/decisions/store-state.md, Versions): a new form in the
 * marker is the same epoch, and records of both forms are read. A form that this version does not know is another epoch.
 *
 * Unlike the clock of `protocol.ts`, Redis's clock may be set back. A marker from the future is another epoch, as if the
 * store were new. A record from the future counts as changed now, and its waits end within the longest lease that can be
 * configured; otherwise they would last until the clock has caught up. Only `r` stays in the future, and members of that
 * collection get no tag until then, because it is not known which of their states are older.
 */
const prelude = `
local LEASE, COLD_START, LONGEST, FORM = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local MAX_VARIANTS, MAX_LEASES, FIELDS, LONGEST_LEASE = 32, 64, 10, 600000000
local WANTED, PRIORITY = math.min(500000, math.floor(LEASE / 30)), math.floor(LEASE / 3)
local MARKER = KEYS[1]
-- For the current call: its record's key, that record's expiry, and what is stored there.
local RECORD, EXPIRY, record, indeterminate, leased
-- For a member of a guarded collection: the collection's key and record, and when it was last written as a whole; else nil and 0.
local WHOLE, whole, FLOOR

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
end
-- The epoch of a marker or record, its form, and when it began; nil: this version does not know its form.
local function read_epoch(text)
  local replication, form, since = string.match(text or '', '^(%w+)/(%d+):(%d+)$')
  form = tonumber(form)
  if form and form >= OLDEST and form <= NEWEST then return replication .. ':' .. since, form, tonumber(since) end
end

local function int(number) return string.format('%.0f', number) end

local now = clock()
local id = replication_id()
local marker = redis.call('GET', MARKER)
local epoch, form, since = read_epoch(marker)
if not epoch or epoch ~= id .. ':' .. int(since) or since > now then epoch, form, since = id .. ':' .. int(now), 0, now end
-- The marker may already have a newer form.
if form < FORM then
  form = FORM
  marker = id .. '/' .. int(form) .. ':' .. int(since)
  redis.call('SET', MARKER, marker)
end
-- Most texts are the marker itself.
local function is_current(text) return text == marker or read_epoch(text) == epoch end
local cold_start_until = since + COLD_START
local cold = now < cold_start_until

local function change(r, at, tagged)
  r.tag, r.shop, r.variants_gone = '', '', true
  r.changed = math.max(r.changed, at)
  if tagged == '1' then r.replaced = math.max(r.replaced, at + 1) end
end

local function create()
  return { tag = '', shop = '', leases = {}, wanted = 0, anonymous_wrote = '0', priority = 0,
    indeterminate = 0, indeterminate_tagged = '0', changed = FLOOR, replaced = 0, variants_gone = true, is_new = true }
end

local function is_collection() return string.sub(RECORD, -1) == '.' end

local function taint(r) for _, lease in ipairs(r.leases) do lease.tainted = '1' end end

local function find_lease(r, token) for i, lease in ipairs(r and r.leases or {}) do if lease.token == token then return i end end end

local function read_leases(text)
  local leases = {}
  for token, until_, tagged, tainted in string.gmatch(text, '([^|,]+)|(%d+)|(%d)|(%d),') do
    leases[#leases + 1] = { token = token, until_ = tonumber(until_), tagged = tagged, tainted = tainted }
  end
  return leases
end

local function write_leases(leases)
  local text = {}
  for i, l in ipairs(leases) do
    text[i] = l.token .. '|' .. int(l.until_) .. '|' .. l.tagged .. '|' .. l.tainted .. ','
  end
  return table.concat(text)
end

-- A record of anonymous clients expires early, but no client shortens the life of a record. A collection outlives its members.
local function save(r)
  local left = redis.call('PTTL', RECORD)
  -- A full Redis refuses the HSET, but no command after the DEL.
  if r.is_new then redis.call('HSET', RECORD, 'e', marker) end
  if r.variants_gone then redis.call('DEL', RECORD) end
  redis.call('HSET', RECORD, 'e', marker, 't', r.tag, 's', r.shop, 'ls', write_leases(r.leases), 'w', int(r.wanted),
    'a', r.anonymous_wrote, 'p', int(r.priority), 'q', int(r.indeterminate), 'qt', r.indeterminate_tagged,
    'c', int(r.changed))
  if is_collection() then redis.call('HSET', RECORD, 'r', int(r.replaced)) end
  redis.call('PEXPIRE', RECORD, math.max(left, is_collection() and 2 * EXPIRY or EXPIRY))
end

local function come_back(r)
  r.changed = math.min(r.changed, now)
  r.wanted = math.min(r.wanted, now + WANTED)
  r.priority = math.min(r.priority, now + PRIORITY)
  for _, lease in ipairs(r.leases) do lease.until_ = math.min(lease.until_, now + LONGEST_LEASE) end
  r.indeterminate = math.min(r.indeterminate, now + LONGEST_LEASE)
  save(r)
end

local function latest(r)
  local latest_ = math.max(r.indeterminate, r.wanted, r.priority)
  for _, lease in ipairs(r.leases) do latest_ = math.max(latest_, lease.until_) end
  return latest_
end

local function load()
  local f = redis.call('HMGET', RECORD, 'e', 't', 's', 'ls', 'w', 'a', 'p', 'q', 'qt', 'c', 'r')
  if not is_current(f[1]) then return nil end
  local r = { tag = f[2], shop = f[3], leases = read_leases(f[4]), wanted = tonumber(f[5]), anonymous_wrote = f[6],
    priority = tonumber(f[7]), indeterminate = tonumber(f[8]), indeterminate_tagged = f[9], changed = tonumber(f[10]),
    replaced = tonumber(f[11] or '0'), variants_gone = false }
  -- + 1: a new member is dated after the change of its collection.
  if r.changed > now + 1 or latest(r) > now + LONGEST_LEASE then come_back(r) end
  for i = #r.leases, 1, -1 do
    local lease = r.leases[i]
    if lease.until_ <= now then change(r, table.remove(r.leases, i).until_, lease.tagged) end
  end
  if r.indeterminate ~= 0 and r.indeterminate <= now then
    change(r, r.indeterminate, r.indeterminate_tagged)
    r.indeterminate, r.indeterminate_tagged = 0, '0'
  end
  return r
end

local function give_priority(r)
  if not r or r.anonymous_wrote ~= '1' then return end
  if r.priority ~= 0 and now < r.priority + PRIORITY then return end
  r.priority = now + PRIORITY
  save(r)
end

local function use(key, r)
  RECORD, record = key, r
  indeterminate = record ~= nil and record.indeterminate ~= 0
  leased = record ~= nil and #record.leases > 0
end

local function open(key, expiry)
  EXPIRY, FLOOR = tonumber(expiry), 0
  -- This key is not among the KEYS, but has the same slot.
  WHOLE = string.match(key, '^(.*%.)[^.:]+$')
  if WHOLE then
    RECORD = WHOLE
    whole = load()
    FLOOR = whole and whole.replaced or 0
  end
  RECORD = key
  use(key, load())
  if record and record.changed < FLOOR then
    change(record, FLOOR)
    taint(record)
  end
end

local function answer(...) return table.concat({ ... }, '\\t') end
`;

const lookUp = `
local why = cold and 'cold-start' or indeterminate and 'indeterminate' or leased and 'lease' or ''
return answer(marker, int(now), why, record and record.tag or '')
`;

const endRead = `
local stamp_epoch, stamp_started, variant, fingerprint, new_tag, shop, of_collection, is_verified = ...
variant, stamp_started = 'v:' .. variant, tonumber(stamp_started)

local function unchanged()
  if not is_current(stamp_epoch) or now - stamp_started > LONGEST or stamp_started > now then return false end
  return stamp_started > (record and record.changed or FLOOR) and stamp_started > cold_start_until
end

if cold or indeterminate then return answer('') end
if not unchanged() then
  if is_verified == '1' then give_priority(record) end
  return answer('')
end
local known = record and not record.variants_gone and redis.call('HGET', RECORD, variant)
local differs = known and fingerprint ~= '' and string.sub(known, 1, #fingerprint + 1) ~= fingerprint .. '|'
if fingerprint == '' then return answer(record and record.tag or '', known and string.match(known, '^[^|]*') or '') end
if leased and record.tag ~= '' then return answer(record.tag) end

local entry = fingerprint .. '|'
local r = record or create()
if r.tag == '' or differs then
  if r.tag ~= '' then r.changed = now end
  r.tag, r.shop, r.variants_gone = new_tag, shop, true
  save(r)
  redis.call('HSET', RECORD, variant, entry)
  return answer(new_tag)
end
if of_collection == '1' and r.shop ~= '' then shop = r.shop end
local full = not known and redis.call('HLEN', RECORD) >= FIELDS + MAX_VARIANTS + (is_collection() and 1 or 0)
if not known or shop ~= r.shop then
  r.shop, r.variants_gone = shop, full
  save(r)
  redis.call('HSET', RECORD, variant, entry)
elseif redis.call('PTTL', RECORD) < EXPIRY / 2 then
  redis.call('PEXPIRE', RECORD, EXPIRY)
end
return answer(r.tag)
`;

/**
 * `tagged`: '1': one of the tags has to be current, and the write takes a lease; 'w': it takes the same lease without a tag;
 * 'o': an anonymous write takes none. `claim` returns what is granted, for `save`.
 */
const claim = `
local token, tagged, is_verified, tags = ...
local function claim(tagged, tags)
if cold then return answer('cold-start', int(cold_start_until - now)) end
if tagged == '1' or tags ~= '' then
  local current = false
  for tag in string.gmatch(tags, '([^,]*),') do current = current or tag == (record and record.tag or '') end
  if not current then
    if indeterminate then return answer('indeterminate', int(record.indeterminate - now)) end
    if is_verified == '1' then give_priority(record) end
    return answer('not-current', '0')
  end
end
if tagged == 'w' then tagged = '1' end
local r = record or create()
if tagged == 'o' then
  local busy_until = math.max(r.wanted, r.priority)
  for _, lease in ipairs(r.leases) do
    if lease.tagged == '1' then busy_until = math.max(busy_until, lease.until_) end
  end
  if busy_until > now then return answer('busy', int(busy_until - now)) end
  if r.indeterminate_tagged == '1' then return answer('indeterminate', int(r.indeterminate - now)) end
  -- After this write WAIT needs a new confirmation. Without a write it counts old ones, on either side of a network split.
  redis.call('SET', MARKER, marker)
  return answer('granted', '0', ''), true
end
local tagged_runs, busy_until = false, r.wanted
for _, lease in ipairs(r.leases) do
  tagged_runs, busy_until = tagged_runs or lease.tagged == '1', math.max(busy_until, lease.until_)
end
local open_to_others = r.wanted <= now and #r.leases < MAX_LEASES and not tagged_runs
if tagged == '1' and leased or tagged ~= '1' and not open_to_others then
  if tagged == '1' and not tagged_runs then
    r.wanted = now + WANTED
    save(r)
  end
  return answer('busy', int(busy_until - now))
end
if indeterminate and (tagged == '1' or record.indeterminate_tagged == '1') then return answer('indeterminate', int(record.indeterminate - now)) end
taint(r)
if tagged == '1' then r.wanted, r.priority = 0, 0 end
r.leases[#r.leases + 1] = { token = token, until_ = now + LEASE, tagged = tagged,
  tainted = (indeterminate or leased) and '1' or '0' }
return answer('granted', '0', r.shop), r
end

local given, granted = claim(tagged, tags)
if granted and WHOLE then
  use(WHOLE, whole)
  local other, also_granted = claim(tagged == 'o' and 'o' or '0', '')
  if not also_granted then return other end
  if also_granted ~= true then save(also_granted) end
  RECORD = key
end
if granted and granted ~= true then save(granted) end
return given
`;

const end = `
local token, tagged, outcome = ...
local changes_nothing = outcome == 'unsent' or outcome == 'refused'

local function mark_indeterminate(r, until_, tagged_)
  r.indeterminate = math.max(r.indeterminate, until_)
  if tagged_ == '1' then r.indeterminate_tagged = '1' end
end

local function finish(tagged, new_tag, shop)
local own = find_lease(record, token)
if not own then
  if changes_nothing then return answer('') end
  local r = record or create()
  change(r, now, tagged)
  taint(r)
  if tagged == 'o' then r.anonymous_wrote = '1' end
  if outcome == 'unknown' then mark_indeterminate(r, now + LEASE, tagged) end
  save(r)
  return answer('')
end

local r = record
local lease = table.remove(r.leases, own)
if changes_nothing then
  -- Delete a record that says no more than an absent one, so that ids that do not exist cannot fill the store.
  local is_old = r.changed <= FLOOR and r.replaced <= FLOOR
  local says_nothing = r.tag == '' and is_old and r.indeterminate == 0 and #r.leases == 0
  if says_nothing then redis.call('DEL', RECORD) else save(r) end
  return answer('')
end
change(r, now, lease.tagged)
if outcome == 'unknown' then mark_indeterminate(r, lease.until_, lease.tagged) end
if outcome == 'applied' and lease.tainted ~= '1' and new_tag ~= '' then r.tag, r.shop = new_tag, shop end
save(r)
return answer(r.tag)
end

local given = finish(tagged, select(4, ...))
if WHOLE then
  use(WHOLE, whole)
  FLOOR = 0
  finish(tagged == 'o' and 'o' or '0', '', '')
end
return given
`;

/**
 * The operations of one process on a slot in one tick. A broken record, or a new one in a full Redis, fails only its own
 * operation; any other error, such as the READONLY of a replica, fails all. `run`: the Lua code of the operations.
 */
const gathered = (run: string) => `
-- One function, not a table of functions: Redis creates all of this anew for each call.
local function run(key, name, expiry, ...)
  open(key, expiry)
  ${run}
end

local lines, full, is_of_use = { marker, int(now), int(cold_start_until) }
for i = 2, #KEYS do
  local fields = {}
  for field in string.gmatch(ARGV[i + 3], '([^\\n]*)\\n') do fields[#fields + 1] = field end
  local is_done, given = pcall(run, KEYS[i], unpack(fields))
  if not is_done then
    local text = type(given) == 'table' and given.err or given
    local function says(part) return string.find(text, part, 1, true) end
    if says('OOM ') then full = given
    elseif not (says('WRONGTYPE') or says('attempt to ') or says('bad argument ') or says('invalid value ') or says('must be strings')) then error(given) end
  end
  lines[i + 2] = is_done and given or '!'
  is_of_use = is_of_use or is_done
end
if full and not is_of_use then error(full) end
return table.concat(lines, '\\n')
`;

const operations = gathered(`
  if name == 'lookUp' then ${lookUp}
  elseif name == 'endRead' then ${endRead}
  else ${end} end
`);

export interface TagScripts {
  /** All but claims. */
  readonly operations: RedisScript;
  readonly claims: ClaimScript;
}

/** The scripts; `edit` is for tests, which break one line of them and look for the update that gets lost. */
export function buildTagScripts(
  edit: (lua: string) => string = (lua) => lua,
  forms: RecordForms = recordForms,
): TagScripts {
  const start = `local OLDEST, NEWEST = ${forms.oldest}, ${forms.newest}${prelude}`;
  return {
    operations: { ...defineScript('tags.operations', edit(start + operations)), isGathered: true },
    claims: { ...defineClaim('tags.claims', edit(start + gathered(claim))), isGathered: true },
  };
}
