import { hash } from 'node:crypto';
import type { RedisScript } from './redis.ts';

/** Names a Lua script; `name` is for people only. */
export function defineScript(name: string, lua: string): RedisScript {
  return { name, lua, sha1: hash('sha1', lua, 'hex'), isClaim: false };
}

/** Microseconds of the server's clock are the last argument; the script proper never sees it. */
const refuseWhenLate = `
do
  local deadline, time = tonumber(table.remove(ARGV)), redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now > deadline then return redis.error_reply('LATE ' .. string.format('%.0f', now)) end
end
`;

/**
 * Names a script that takes something for its caller (a lease, an exchange). It is sent with its caller's deadline in the
 * time of the server that runs it, and when it is late it changes nothing: whoever has been told 503 does not hold
 * anything afterwards. docs/decisions/store-calls.md.
 */
export function defineClaim(name: string, lua: string): RedisScript {
  return { ...defineScript(name, refuseWhenLate + lua), isClaim: true };
}
