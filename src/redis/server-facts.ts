import { Cluster, type Redis as RedisClient } from 'ioredis';
import type { Client } from './clients.ts';
import { defineScript, type ServerFacts } from './redis.ts';

const maxLagSeconds = 3;

/** Asks every primary by INFO, since CONFIG is often forbidden. */
export async function askServerFacts(client: Client): Promise<ServerFacts> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  const infos = await Promise.all(nodes.map((node) => node.info('default')));
  return readServerFacts(infos);
}

/** Exported for its tests. */
export function readServerFacts(infos: readonly string[]): ServerFacts {
  const all = (name: string) => infos.map((info) => field(info, name) ?? '');
  const memories = infos.map((info) => ({
    usedBytes: Number(field(info, 'used_memory') ?? 0),
    maxBytes: Number(field(info, 'maxmemory') ?? 0),
  }));
  return {
    evictingPolicy: all('maxmemory_policy').find((policy) => policy !== '' && policy !== 'noeviction'),
    memory: memories.reduce((fullest, each) => (shareOf(each) > shareOf(fullest) ? each : fullest), {
      usedBytes: 0,
      maxBytes: 0,
    }),
    connectedReplicas: Math.min(...infos.map(countReplicas)),
    runIds: all('run_id').toSorted().join(' '),
    replicationIds: all('master_replid').toSorted().join(' '),
  };
}

/** In `slave0:ip=…,port=…,state=online,offset=…,lag=1` the lag is seconds since its last acknowledgement, sent each second. */
function countReplicas(info: string): number {
  return info.split('\n').filter((line) => {
    const lag = /^slave\d{1,4}:.{0,200},state=online,.{0,100}lag=(\d{1,9})/.exec(line)?.[1];
    return lag !== undefined && Number(lag) <= maxLagSeconds;
  }).length;
}

/** How full a node is, from 0 to 1; without `maxmemory` as a share of a terabyte, so that nodes can still be compared. */
function shareOf({ usedBytes, maxBytes }: ServerFacts['memory']): number {
  return usedBytes / (maxBytes || 2 ** 40);
}

function field(info: string, name: string): string | undefined {
  const begin = info.indexOf(`\n${name}:`);
  if (begin === -1) return undefined;
  const from = begin + name.length + 2;
  const end = info.indexOf('\n', from);
  return info.slice(from, end === -1 ? undefined : end).trimEnd();
}

/** The commands that the features use, with sample arguments; `KEY` and `CHANNEL` stand for ones with the prefix. */
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
  ['HINCRBY', 'KEY', 'f', '1'],
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

/** The needed commands that the user of this connection may not use on keys and channels with the prefix. */
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

/** Before Redis 7: tries the commands that change nothing. */
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
