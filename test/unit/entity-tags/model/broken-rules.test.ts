import { describe, expect, test } from 'vitest';
import { digest } from '../../../../src/entity-tags/keys.ts';
import { buildTagScripts, type TagScripts } from '../../../../src/entity-tags/lua.ts';
import { MemoryTagStore } from '../../../../src/entity-tags/memory-store.ts';
import * as steps from '../../../../src/entity-tags/protocol.ts';
import type { ResourceKey } from '../../../../src/entity-tags/tag-store.ts';
import { RedisTagStore } from '../../../../src/entity-tags/redis-store.ts';
import { type Break, swap } from '../clocked-scripts.ts';
import { useRedis } from '../connected-redis.ts';
import { timesOf } from '../tag-store.contract.ts';
import { breakSteps, breaksOf, brokenRules, settingOf, worldOf } from './breaks.ts';
import { exploreAll, walk, walkMany } from './explore.ts';
import { type Replayed, replay } from './replay.ts';
import { type Call, guardedCrowd, type Program, type Setting, tick, ticks } from './world.ts';

const whole = { steps, ticks, faults: {} } as const;
/** Random walks: a quarter is replayed on the memory store, a sixth on Redis. `MODEL_WALKS=20000` for a longer run. */
const walks = Number(process.env.MODEL_WALKS ?? 600);
/** The keys of a member and of its collection. Without a guarded collection the two keys are unrelated. */
const plainKeys = { key: digest(['one']), collection: digest(['all']) };
const guardedKeys = {
  key: `${digest(['all'])}.${digest(['one'])}` as ResourceKey,
  collection: `${digest(['all'])}.` as ResourceKey,
};
const memoryWalks = Math.round(walks / 4);
const redisWalks = Math.round(walks / 6);

describe('the claim protocol, with one rule broken on purpose', () => {
  test.each(brokenRules.map((rule) => [rule.rule, rule] as const))('%s', async (_, rule) => {
    const broken = settingOf(rule, rule.steps === undefined ? steps : await breakSteps(rule.steps), true);
    const { found } = exploreUpTo(broken, 20_000) ?? walkMany(broken, 200_000, worldOf(rule.world).firstSeed);
    expect(found?.wrong).toMatch(/lost update|304|no client knows of|tag that is current/);
    // The same setting with the rule intact.
    expect(walkMany(settingOf(rule, steps, false), 500).found).toBeNull();
  });
});

/** Undefined if no violation is found in this many states. */
function exploreUpTo(setting: Setting, states: number) {
  try {
    const explored = exploreAll(setting, states);
    return explored.found === null ? undefined : explored;
  } catch {
    return undefined;
  }
}

describe('the stores give the answers of the model', () => {
  const times = { ...timesOf(), leaseMs: ticks.lease, coldStartMs: ticks.coldStart, longestReadMs: 1000 };
  const crowd: readonly Program[] = [
    ...(['reader', 'reader', 'timed-reader', 'timed-reader', 'head', 'other'] as const),
    ...(['writer', 'writer', 'writer', 'child', 'child', 'anonymous', 'anonymous'] as const),
    ...(['deleter', 'putter'] as const),
  ];
  const faults = { crash: 2, 'end-lost': 1, 'end-again': 1, 'slow-claim': 1 };
  const setting: Setting = { ...whole, programs: crowd, faults, maxTicks: 20 };
  const memorySetting: Setting = { ...setting, ticks: { ...ticks, coldStart: 0 } };
  const redisSetting: Setting = { ...setting, faults: { ...faults, wipe: 1, restart: 1, restore: 1 } };

  test.each([
    ['a plain member', memorySetting, plainKeys],
    ['a guarded collection', { ...memorySetting, programs: guardedCrowd, isGuarded: true }, guardedKeys],
  ] as const)(`memory, %s, ${memoryWalks} walks`, async (_, setting, keys) => {
    for (let seed = 1; seed <= memoryWalks; seed += 1) {
      let nowMs = 100;
      const store = new MemoryTagStore({ times, maxRecords: 10, now: () => nowMs });
      const under: Replayed = {
        store,
        ...keys,
        setTime: (units) => {
          nowMs = units / tick;
        },
        epochOf: () => store.epoch,
      };
      const difference = await replay(walk(setting, seed).calls, under);
      expect(difference, `seed ${seed}`).toBeNull();
    }
  });

  const redis = useRedis();

  async function replayOnRedis(
    scripts: TagScripts,
    calls: readonly Call[],
    { key, collection } = plainKeys,
  ): Promise<string | null> {
    const keyPrefix = `walk-${Math.random()}`;
    const slot = `${keyPrefix}:{tags-0}`;
    const keys = [`${slot}:epoch`, `${slot}:${key}`, `${slot}:${collection}`] as const;
    const copy = async (fromSuffix: string, toSuffix: string) => {
      await redis().command('DEL', ...keys.map((each) => each + toSuffix));
      for (const each of keys) await redis().command('COPY', each + fromSuffix, each + toSuffix);
    };
    const [marker] = keys;
    const [now, id] = [`${marker}:now`, `${marker}:id`];
    await redis().command('MSET', now, 100 * tick, id, '1', marker, '1/6:0');
    await copy('', ':disk');
    // A newer form comes into force during the walk.
    let asked = 0;
    const form = () => (++asked > 4 ? 7 : 6);
    const difference = await replay(calls, {
      store: new RedisTagStore({ redis: redis(), times, keyPrefix, scripts, form }),
      key,
      collection,
      setTime: async (units) => void (await redis().command('SET', now, units)),
      wipe: async () => void (await redis().command('DEL', ...keys)),
      save: () => copy('', ':disk'),
      restore: () => copy(':disk', ''),
      setIdentity: async (given) => void (await redis().command('SET', id, given)),
      epochOf: (epoch) => epoch.replace(':', '/6:'),
    });
    await redis().command('DEL', now, id, ...keys, ...keys.map((each) => `${each}:disk`));
    return difference;
  }

  test.each([
    ['a plain member', redisSetting, plainKeys],
    ['a guarded collection', { ...redisSetting, programs: guardedCrowd, isGuarded: true }, guardedKeys],
  ] as const)(`redis, %s, ${redisWalks} walks`, async (_, setting, keys) => {
    const scripts = modelScripts();
    const seeds = Array.from({ length: redisWalks }, (_, i) => i + 1).values();
    const worker = async () => {
      for (const seed of seeds) {
        const difference = await replayOnRedis(scripts, walk(setting, seed).calls, keys);
        expect(difference, `seed ${seed}`).toBeNull();
      }
    };
    // Sixteen at a time, because each one mostly waits for Redis.
    await Promise.all(Array.from({ length: 16 }, worker));
  });

  test('redis, broken: a newer form in force is the same epoch', async () => {
    const scripts = modelScripts([{ search: 'or read_epoch(text) == epoch', replace: '' }]);
    let [seed, difference] = [0, null as string | null];
    while (difference === null && seed < 20) {
      seed += 1;
      difference = await replayOnRedis(scripts, walk(redisSetting, seed).calls);
    }
    expect(difference).not.toBeNull();
  });

  // The broken script answers like the broken model up to the violation; the intact script differs.
  test.each(brokenRules.filter(({ lua }) => lua !== undefined).map((rule) => [rule.rule, rule] as const))(
    'redis, broken: %s',
    async (_, rule) => {
      const broken = rule.steps === undefined ? steps : await breakSteps(rule.steps);
      const { firstSeed, isGuarded } = worldOf(rule.world);
      const { found, calls } = findWalk(settingOf(rule, broken, true), firstSeed);
      expect(found).not.toBeNull();
      const keys = isGuarded ? guardedKeys : plainKeys;
      expect(await replayOnRedis(modelScripts(breaksOf(rule.lua)), calls, keys)).toBeNull();
      expect(await replayOnRedis(modelScripts(), calls, keys)).not.toBeNull();
    },
  );
});

function findWalk(setting: Setting, firstSeed = 1) {
  for (let seed = firstSeed; seed < 300_000; seed += 1) {
    const walked = walk(setting, seed);
    if (walked.found !== null) return walked;
  }
  return { found: null, calls: [] };
}

/** The scripts with the clock and the identity of each walk, and with these breaks. */
function modelScripts(breaks: readonly Break[] = []): TagScripts {
  const edits = [
    {
      search: 'return time[1] * 1000000 + time[2]',
      replace: "return tonumber(redis.call('GET', MARKER .. ':now'))",
    },
    {
      search: "return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')",
      replace: "return redis.call('GET', MARKER .. ':id')",
    },
  ];
  const met = new Set<Break>();
  const scripts = buildTagScripts(
    (lua) => {
      const present = breaks.filter(({ search }) => lua.includes(search));
      for (const each of present) met.add(each);
      return [...edits, ...present].reduce(swap, lua);
    },
    { oldest: 6, newest: 7 },
  );
  for (const each of breaks) if (!met.has(each)) throw new Error(`nothing to break: ${each.search}`);
  return scripts;
}
