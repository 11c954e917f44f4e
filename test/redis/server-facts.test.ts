import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findMissingRights, readServerFacts } from '../../src/redis/server-facts.ts';

const root = path.join(import.meta.dirname, '../..');
type Server = Parameters<typeof findMissingRights>[0];

/** What a server is asked for, and what it is said to answer. */
function server(evaluate: (args: readonly string[]) => unknown, refused: readonly string[] = []) {
  const tried: string[] = [];
  const client = {
    eval: async (_lua: string, _keys: number, ...args: readonly string[]) => evaluate(args),
    call: async (name: string) => {
      tried.push(name);
      if (refused.includes(name)) throw new Error(`NOPERM this user has no permissions to run '${name}'`);
      if (name === 'EVALSHA') throw new Error('NOSCRIPT No matching script.');
    },
  };
  return { client: client as unknown as Server, tried };
}

describe('rights that are missed', () => {
  it('are looked for of every command that a script or a call of ours uses, on keys of ours', async () => {
    let asked: readonly string[] = [];
    const { client } = server((args) => {
      asked = args;
      return [];
    });
    expect(await findMissingRights(client, 'blue')).toEqual([]);
    expect(asked.slice(0, 2)).toEqual(['blue:rights', 'blue:url:purges']);
    const withoutKey = asked.slice(2).filter((line) => !/ (?:KEY|CHANNEL)\b/.test(line));
    expect(withoutKey.map((line) => line.split(' ')[0])).toEqual(['INFO', 'TIME', 'WAIT', 'EVAL', 'EVALSHA']);
    const known = new Set(asked.slice(2).map((line) => line.split(' ')[0]));
    const used = globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
      [
        ...readFileSync(path.join(root, file), 'utf8').matchAll(/(?:redis\.p?call|\.command)\('([A-Z]+)'/g),
      ].map(([, name]) => name),
    );
    expect(used.length).toBeGreaterThan(50);
    expect([...new Set(used)].filter((name) => !known.has(name))).toEqual([]);
  });

  it('are those that the server names', async () => {
    const { client, tried } = server(() => ['WAIT', 'HSET']);
    expect([await findMissingRights(client, 'p'), tried]).toEqual([['WAIT', 'HSET'], []]);
  });

  it('are tried one by one, without harm, where the server cannot tell', async () => {
    const { client, tried } = server(() => ['cannot tell'], ['WAIT']);
    expect(await findMissingRights(client, 'p')).toEqual(['WAIT']);
    expect(tried).toEqual(['INFO', 'TIME', 'WAIT', 'EVAL', 'EVALSHA']);
  });

  it('are also that of asking', async () => {
    const { client } = server(() => {
      throw new Error("NOPERM this user has no permissions to run the 'eval' command");
    }, ['EVAL', 'TIME']);
    expect(await findMissingRights(client, 'p')).toEqual(['EVAL', 'TIME']);
    const broken = server(() => {
      throw new Error('Connection is closed.');
    });
    await expect(findMissingRights(broken.client, 'p')).rejects.toThrow('closed');
  });
});

describe('what servers say of themselves', () => {
  const info = (fields: Readonly<Record<string, string | number>>) =>
    `# Server\r\n${Object.entries(fields)
      .map(([name, value]) => `${name}:${value}\r\n`)
      .join('')}`;
  const slave = (lag: number, state = 'online') => `ip=10.0.0.1,port=6379,state=${state},offset=1,lag=${lag}`;

  it('of several nodes is that of the fullest, of the one with the fewest replicas, and any that evicts', () => {
    const nodes = [
      { used_memory: 50, maxmemory: 100, maxmemory_policy: 'noeviction', slave0: slave(1), slave1: slave(3) },
      { used_memory: 60, maxmemory: 200, maxmemory_policy: 'allkeys-lru', slave0: slave(0) },
    ];
    const ids = [
      { run_id: 'b', master_replid: 'y' },
      { run_id: 'a', master_replid: 'x' },
    ];
    expect(readServerFacts(nodes.map((node, i) => info({ ...node, ...ids[i] })))).toEqual({
      ...{ evictingPolicy: 'allkeys-lru', memory: { usedBytes: 50, maxBytes: 100 }, connectedReplicas: 1 },
      ...{ runIds: 'a b', replicationIds: 'x y' },
    });
  });

  it.each([
    [slave(3), 1],
    [slave(4), 0],
    [slave(0, 'wait_bgsave'), 0],
  ])('a replica %s counts %i', (line, count) => {
    expect(readServerFacts([info({ slave0: line })]).connectedReplicas).toBe(count);
  });

  it('without a limit of memory the larger one still is the fullest, and nothing is nothing', () => {
    const of = (...all: number[]) => readServerFacts(all.map((used_memory) => info({ used_memory }))).memory;
    expect([of(5, 9, 7), of()]).toEqual([
      { usedBytes: 9, maxBytes: 0 },
      { usedBytes: 0, maxBytes: 0 },
    ]);
    expect(readServerFacts([info({})])).toMatchObject({ evictingPolicy: undefined, runIds: '' });
  });
});
