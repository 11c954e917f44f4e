import type { Redis as RedisClient } from 'ioredis';
import { defineScript } from './script.ts';

/** What the features do, with arguments as they give them; `KEY` and `CHANNEL` stand for those of the prefix. */
const needed: readonly (readonly string[])[] = [
  ['INFO'],
  ['TIME'],
  ['WAIT', '0', '0'],
  ['EVAL', '1', '0'],
  ['EVALSHA', 'sha', '0'],
  ['PUBLISH', 'CHANNEL', 'x'],
  ['SUBSCRIBE', 'CHANNEL'],
  ['GET', 'KEY'],
  ['MGET', 'KEY'],
  ['SET', 'KEY', 'x'],
  ['DEL', 'KEY'],
  ['EXISTS', 'KEY'],
  ['PTTL', 'KEY'],
  ['PERSIST', 'KEY'],
  ['PEXPIRE', 'KEY', '1'],
  ['PEXPIREAT', 'KEY', '1'],
  ['HSET', 'KEY', 'f', 'x'],
  ['HSETNX', 'KEY', 'f', 'x'],
  ['HGET', 'KEY', 'f'],
  ['HMGET', 'KEY', 'f'],
  ['HGETALL', 'KEY'],
  ['HDEL', 'KEY', 'f'],
  ['HLEN', 'KEY'],
  ['ZADD', 'KEY', '1', 'x'],
  ['ZREM', 'KEY', 'x'],
  ['ZRANGEBYSCORE', 'KEY', '-inf', '+inf'],
  ['ZREMRANGEBYSCORE', 'KEY', '-inf', '+inf'],
  ['RPUSH', 'KEY', 'x'],
  ['LINDEX', 'KEY', '0'],
  ['LRANGE', 'KEY', '0', '1'],
  ['LTRIM', 'KEY', '0', '1'],
];

// ARGV key, channel, then a command a line with its arguments between spaces. Redis 7 and later can tell without doing it.
const findScript = defineScript(
  'find-missing-rights',
  `
if not redis.acl_check_cmd then return {'cannot tell'} end
local missing = {}
for i = 3, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do
    words[#words + 1] = word == 'KEY' and ARGV[1] or word == 'CHANNEL' and ARGV[2] or word
  end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  if not known or not may then missing[#missing + 1] = words[1] end
end
return missing
`,
);

/** Names of the commands that the user of this connection may not use, on its own keys and channel. */
export async function findMissingRights(client: RedisClient, prefix: string): Promise<string[]> {
  const commands = needed.map((words) => words.join(' ').replaceAll('\n', ' '));
  const args = [`${prefix}:rights`, `${prefix}:url:purges`, ...commands];
  try {
    const missing = (await client.eval(findScript.lua, 0, ...args)) as string[];
    return missing[0] === 'cannot tell' ? await tryEach(client) : missing;
  } catch (error) {
    if (!isRefused(error)) throw error;
    return ['EVAL', ...(await tryEach(client)).filter((name) => name !== 'EVAL')];
  }
}

/** What can be tried without changing anything. */
async function tryEach(client: RedisClient): Promise<string[]> {
  const harmless = needed.filter(([name = '']) => ['INFO', 'TIME', 'WAIT', 'EVAL', 'EVALSHA'].includes(name));
  const tried = harmless.map(async ([name = '', ...args]) => {
    try {
      await client.call(name, ...args);
      return undefined;
    } catch (error) {
      return isRefused(error) ? name : undefined;
    }
  });
  return (await Promise.all(tried)).filter((name) => name !== undefined);
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && /^NOPERM|unknown command/.test(error.message);
}
