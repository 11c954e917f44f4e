import { describe, expect, it } from 'vitest';
import { readServerFacts } from '../../../src/redis/watch.ts';

describe('readServerFacts', () => {
  const info = (fields: Readonly<Record<string, string | number>>) =>
    `# Server\r\n${Object.entries(fields)
      .map(([name, value]) => `${name}:${value}\r\n`)
      .join('')}`;
  const slave = (lag: number, state = 'online') => `ip=10.0.0.1,port=6379,state=${state},offset=1,lag=${lag}`;

  it('of several nodes: the memory of the fullest, the fewest replicas, any evicting policy', () => {
    const nodes = [
      { used_memory: 50, maxmemory: 100, maxmemory_policy: 'noeviction', slave0: slave(1), slave1: slave(3) },
      { used_memory: 60, maxmemory: 200, maxmemory_policy: 'allkeys-lru', slave0: slave(0) },
    ];
    const ids = [{ master_replid: 'y', server_time_usec: 5_000_000 }, { master_replid: 'x' }];
    expect(
      readServerFacts(
        nodes.map((node, i) => info({ ...node, ...ids[i] })),
        7,
      ),
    ).toEqual({
      ...{ evictingPolicy: 'allkeys-lru', memory: { usedBytes: 50, maxBytes: 100 }, connectedReplicas: 1 },
      ...{ replicationIds: 'x y', timeMs: 5_000, askedMs: 7 },
    });
  });

  it.each([
    [slave(3), 1],
    [slave(4), 0],
    [slave(0, 'wait_bgsave'), 0],
  ])('a replica %s counts %i', (line, count) => {
    expect(readServerFacts([info({ slave0: line })], 0).connectedReplicas).toBe(count);
  });

  it('without maxmemory: the largest memory; without nodes: 0', () => {
    const of = (...all: number[]) =>
      readServerFacts(
        all.map((used_memory) => info({ used_memory })),
        0,
      ).memory;
    expect([of(5, 9, 7), of()]).toEqual([
      { usedBytes: 9, maxBytes: 0 },
      { usedBytes: 0, maxBytes: 0 },
    ]);
    expect(readServerFacts([info({})], 0)).toMatchObject({ evictingPolicy: undefined, replicationIds: '' });
  });
});
