import { defineScript } from '../redis/redis.ts';

/**
 * Writes one batch of one process. KEYS: meta, processes, index, asked, then one for each entry. ARGV: id, number of the batch,
 * rules, keepMs, why counts are missing, salt, isLast, five limits, asked rows, entries. Returns the salt in force.
 */
export const writeScript = defineScript(
  'write-rollout',
  `
local META, PROCESSES, INDEX, ASKED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, batch, rules, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local lost_after, most_entries, most_clients = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local day_ms, most_days, asked_rows, first_entry = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13], 14
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function gap(why) redis.call('HSET', META, 'wholeSince', text(now), 'why', why) end

redis.call('HSETNX', META, 'salt', ARGV[6])
local last = tonumber(redis.call('HGET', META, 'last') or '0')
if last == 0 then gap('counting began then') end

-- Who is there. When nobody could write for a while, those that are still there have all counted, and will write now.
local all_silent = now - last > lost_after
local known, others, done = false, 0, 0
local flat = redis.call('HGETALL', PROCESSES)
for i = 1, #flat, 2 do
  local seen_batch, seen, seen_rules = string.match(flat[i + 1], '^(%d+)|(%d+)|(.*)$')
  if flat[i] == id then
    known, done = true, tonumber(seen_batch)
  elseif all_silent then
    others = others + 1
    redis.call('HSET', PROCESSES, flat[i], seen_batch .. '|' .. text(now) .. '|' .. seen_rules)
  elseif now - tonumber(seen) > lost_after then
    redis.call('HDEL', PROCESSES, flat[i])
    gap('a process ended without its last word')
  else
    others = others + 1
  end
end
if last > 0 and all_silent and not known and others == 0 then gap('nobody counted before') end
if ARGV[5] ~= '' then gap(ARGV[5]) end

local function has_place(key)
  if redis.call('HGET', INDEX, key) or redis.call('HLEN', INDEX) < most_entries then return true end
  local index = redis.call('HGETALL', INDEX)
  for i = 1, #index, 2 do
    if now - tonumber(index[i + 1]) > keep then redis.call('HDEL', INDEX, index[i]) end
  end
  return redis.call('HLEN', INDEX) < most_entries
end

local function forget_old(KEY)
  local fields = redis.call('HGETALL', KEY)
  local clients = 0
  for i = 1, #fields, 2 do
    local kind, rest = string.sub(fields[i], 1, 2), string.sub(fields[i], 3)
    -- h: an earlier version counted by hour.
    local is_old = kind == 'h:' or (kind == 'd:' and tonumber(rest) < math.floor(now / day_ms) - most_days)
    if kind == 'c:' then
      is_old = tonumber(string.match(fields[i + 1], '^%d+|(%d+)$')) < now - keep
      if not is_old then clients = clients + 1 end
    end
    if is_old then redis.call('HDEL', KEY, fields[i]) end
  end
  redis.call('HSET', KEY, 'clients', text(clients))
end

local function add(KEY, field, number)
  local before = redis.call('HGET', KEY, field)
  redis.call('HSET', KEY, field, text(tonumber(before or '0') + number))
  return not before
end

local function add_client(KEY, client)
  local field = 'c:' .. client.name
  local before = redis.call('HGET', KEY, field)
  local count, seen = 0, 0
  if before then
    count, seen = string.match(before, '^(%d+)|(%d+)$')
  elseif tonumber(redis.call('HGET', KEY, 'clients') or '0') >= most_clients then
    return add(KEY, 'beyond', client.requests)
  else
    add(KEY, 'clients', 1)
  end
  local latest = math.max(tonumber(seen), client.last)
  redis.call('HSET', KEY, field, text(count + client.requests) .. '|' .. text(latest))
end

local function add_entry(KEY, entry)
  if not has_place(entry.key) then return gap('there are more rows and reasons than are kept') end
  redis.call('HSET', INDEX, entry.key, text(now))
  redis.call('HSETNX', KEY, 'since', text(entry.since))
  add(KEY, 'requests', entry.requests)
  if tonumber(redis.call('HGET', KEY, 'last') or '0') < entry.last then redis.call('HSET', KEY, 'last', text(entry.last)) end
  add(KEY, 'beyond', entry.beyond)
  local is_new_day = false
  for day, number in pairs(entry.days) do is_new_day = add(KEY, 'd:' .. day, number) or is_new_day end
  if is_new_day then forget_old(KEY) end
  for _, client in ipairs(entry.clients) do add_client(KEY, client) end
  redis.call('PEXPIRE', KEY, keep)
end

-- A field holds LAST|DAY=REQUESTS,DAY=REQUESTS
local function add_asked(row, asked)
  local seen, before = string.match(redis.call('HGET', ASKED, row) or '0|', '^(%d+)|(.*)$')
  for day, requests in string.gmatch(before, '(%d+)=(%d+)') do
    if tonumber(day) >= math.floor(now / day_ms) - most_days then
      asked.days[day] = (asked.days[day] or 0) + tonumber(requests)
    end
  end
  local days = {}
  for day, requests in pairs(asked.days) do days[#days + 1] = day .. '=' .. text(requests) end
  local latest = math.max(tonumber(seen), asked.lastSeenMs)
  redis.call('HSET', ASKED, row, text(latest) .. '|' .. table.concat(days, ','))
end

-- A batch whose answer was lost comes again: it counts once.
if batch > done then
  for row, asked in pairs(cjson.decode(asked_rows)) do add_asked(row, asked) end
  for i = first_entry, #ARGV do add_entry(KEYS[5 + i - first_entry], cjson.decode(ARGV[i])) end
  done = batch
end
redis.call('HSET', META, 'last', text(now))
if ARGV[7] == '1' then
  redis.call('HDEL', PROCESSES, id)
else
  redis.call('HSET', PROCESSES, id, text(done) .. '|' .. text(now) .. '|' .. rules)
end
for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], keep) end
return redis.call('HGET', META, 'salt')
`,
);

/**
 * Since when rows are observed by a rule. Two processes may tell the same row at once: the earlier time stays, whichever comes
 * last. KEYS: rows. ARGV: time, then a row and the digest of its rule in turn.
 */
export const tellRowsScript = defineScript(
  'tell-rollout-rows',
  `
for i = 2, #ARGV, 2 do
  local row, rule = ARGV[i], ARGV[i + 1]
  local known, since = string.match(redis.call('HGET', KEYS[1], row) or '', '^(.*)|(%d+)$')
  if known ~= rule or tonumber(since) > tonumber(ARGV[1]) then redis.call('HSET', KEYS[1], row, rule .. '|' .. ARGV[1]) end
end
`,
);
