import { defineScript } from '../redis/redis.ts';

/**
 * Adds one batch. KEYS: meta, rows, refusals. ARGV: time that the process has counted, why counts are missing, retention, the
 * silence that is a gap, the silence after which a row starts anew, most refusals, most clients, first day, rows, refusals.
 */
export const writeScript = defineScript(
  'write-rollout',
  `
local META, ROWS, REFUSALS = KEYS[1], KEYS[2], KEYS[3]
local counted_for, why, keep, lost_after = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local anew_after, most_refusals, most_clients = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local first_day, rows, refusals = tonumber(ARGV[8]), cjson.decode(ARGV[9]), cjson.decode(ARGV[10])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function gap(reason) redis.call('HSET', META, 'wholeSince', text(now), 'why', reason) end
local function known(KEY, field)
  local found = redis.call('HGET', KEY, field)
  return found and cjson.decode(found)
end

local last = tonumber(redis.call('HGET', META, 'last') or '0')
if last == 0 then
  gap('counting began then')
elseif now - counted_for - last > lost_after then
  gap('no process counted before')
end
if why ~= '' then gap(why) end
redis.call('HSET', META, 'last', text(now))

for row, fresh in pairs(rows) do
  local before = known(ROWS, row)
  if before and before.rule == fresh.rule and fresh.sinceMs - before.lastSeenMs <= anew_after then
    fresh.sinceMs = math.min(before.sinceMs, fresh.sinceMs)
    fresh.lastSeenMs = math.max(before.lastSeenMs, fresh.lastSeenMs)
    fresh.requests = before.requests + fresh.requests
  end
  redis.call('HSET', ROWS, row, cjson.encode(fresh))
end

local function cut_clients(count)
  local names = {}
  for name in pairs(count.clients) do names[#names + 1] = name end
  table.sort(names, function(a, b) return count.clients[a] > count.clients[b] end)
  for i = most_clients + 1, #names do
    count.beyond = count.beyond + count.clients[names[i]]
    count.clients[names[i]] = nil
  end
end

for name, fresh in pairs(refusals) do
  local before = known(REFUSALS, name)
  if before and now - before.lastSeenMs <= keep then
    fresh.requests = before.requests + fresh.requests
    fresh.sinceMs = math.min(before.sinceMs, fresh.sinceMs)
    fresh.lastSeenMs = math.max(before.lastSeenMs, fresh.lastSeenMs)
    fresh.beyond = before.beyond + fresh.beyond
    for day, number in pairs(before.days) do
      if tonumber(day) >= first_day then fresh.days[day] = (fresh.days[day] or 0) + number end
    end
    for client, number in pairs(before.clients) do fresh.clients[client] = (fresh.clients[client] or 0) + number end
  end
  cut_clients(fresh)
  if before or redis.call('HLEN', REFUSALS) < most_refusals then
    redis.call('HSET', REFUSALS, name, cjson.encode(fresh))
  else
    gap('there are more rows and reasons than are kept')
  end
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep) end
`,
);
