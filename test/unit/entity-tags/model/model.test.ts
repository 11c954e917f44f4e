import { afterAll, describe, expect, test } from 'vitest';
import { writeResult } from '../../../../scripts/results.ts';
import * as steps from '../../../../src/entity-tags/protocol.ts';
import { actionsOf } from './actions.ts';
import { brokenRules } from './breaks.ts';
import { exploreAll, walkMany } from './explore.ts';
import { createWorld, guardedCrowd, type Program, type Setting, ticks, type World } from './world.ts';

const whole = { steps, ticks, faults: {} } as const;
/** Number of random walks; `MODEL_WALKS=20000` for a longer run. */
const walks = Number(process.env.MODEL_WALKS ?? 400);
/** With MODEL_WALKS the two largest worlds have one more tick. */
const moreTicks = process.env.MODEL_WALKS === undefined ? 0 : 1;
const explored: number[] = [];
afterAll(() => {
  if (process.env.MODEL_WALKS === undefined || explored.length === 0) return;
  const states = explored.reduce((sum, each) => sum + each, 0);
  writeResult('model', {
    title: 'Model of the entity-tag protocol',
    command: `MODEL_WALKS=${walks} npx vitest run test/unit/entity-tags/model`,
    promises: [
      {
        promise: 'model: no order of steps loses an update or leaves a resource stuck',
        measured: '0',
        isMet: true,
      },
    ],
    figures: [
      ['states explored, in every order', states.toLocaleString('en')],
      ['random walks under all faults', walks.toLocaleString('en')],
      ['rules broken on purpose', String(brokenRules.length)],
    ],
  });
});

describe('the claim protocol', () => {
  test.each([
    [['reader', 'writer', 'writer'], { crash: 1 }, 4],
    [['reader', 'writer', 'child'], { crash: 1 }, 4],
    [['reader', 'reader', 'writer', 'child'], { evict: 2 }, 1 + moreTicks],
    [['timed-reader', 'writer', 'child'], { 'end-lost': 1 }, 3],
    [['reader', 'deleter', 'creator'], {}, 3],
    [['reader', 'deleter', 'putter', 'putter'], {}, 2],
    [['reader', 'deleter', 'putter'], { crash: 1 }, 3],
    [['reader', 'putter', 'writer'], { restart: 1 }, 2],
    [['reader', 'writer', 'checker'], { 'end-lost': 1 }, 3],
    [['reader', 'other', 'checker', 'writer'], {}, 1],
    [['reader', 'writer', 'writer'], { 'end-again': 2 }, 3],
    [['reader', 'writer', 'child'], { 'end-again': 1 }, 2],
    [['reader', 'writer'], { restart: 1, wipe: 1 }, 5],
    [['reader', 'writer', 'writer'], { failover: 1 }, 2],
    [['reader', 'child', 'child', 'writer'], {}, 1 + moreTicks],
    [['reader', 'writer', 'child'], { 'slow-claim': 2 }, 3],
    [['reader', 'writer', 'anonymous'], { crash: 1 }, 3],
    [['reader', 'writer', 'anonymous'], { 'end-lost': 1, restart: 1 }, 3],
    [['timed-reader', 'writer', 'anonymous', 'anonymous'], {}, 1],
    [['reader', 'child', 'writer', 'anonymous'], {}, 1],
    [['reader', 'writer', 'checker', 'anonymous'], {}, 1],
  ] as ReadonlyArray<[Program[], Setting['faults'], number]>)(
    'every order of %j with faults %j over %i ticks: no lost update',
    (programs, faults, maxTicks) => {
      const { states, found } = exploreAll({ ...whole, programs, faults, maxTicks }, 2_000_000);
      expect(found).toBeNull();
      explored.push(states);
    },
  );

  test.each([
    [['reader', 'lister', 'writer', 'batch'], {}, 2],
    [['reader', 'lister', 'child', 'batch'], {}, 2],
    [['reader', 'timed-lister', 'poster', 'batch'], {}, 2],
    [['reader', 'lister', 'writer', 'poster'], {}, 1],
    [['reader', 'writer', 'poster'], { crash: 1 }, 4],
    [['lister', 'child', 'batch'], { crash: 1 }, 4],
    [['reader', 'poster', 'writer'], { evict: 2 }, 3],
    [['lister', 'child', 'batch'], { evict: 2 }, 3],
    [['reader', 'writer', 'poster'], { 'end-again': 1 }, 2],
    [['reader', 'writer', 'poster'], { 'end-lost': 1 }, 3],
    [['reader', 'child', 'poster'], { 'slow-claim': 1 }, 2],
    [['lister', 'anonymous', 'batch'], {}, 2],
    [['reader', 'writer', 'poster'], { restart: 1 }, 3],
  ] as ReadonlyArray<[Program[], Setting['faults'], number]>)(
    'a guarded collection, every order of %j with faults %j over %i ticks: no lost update',
    (programs, faults, maxTicks) => {
      const setting: Setting = { ...whole, programs, faults, maxTicks, isGuarded: true };
      const { states, found } = exploreAll(setting, 2_000_000);
      expect(found).toBeNull();
      explored.push(states);
    },
  );

  test.each([
    // Where possible, these settings have two worlds that differ in one part only, for each part.
    [['writer', 'anonymous'], { failover: 1 }],
    [['child', 'anonymous'], { crash: 1 }],
    [['reader', 'anonymous'], { restore: 1 }],
  ] as ReadonlyArray<[Program[], Setting['faults']]>)(
    'worlds of %j with faults %j: as many states as different JSON texts',
    (programs, faults) => {
      const setting: Setting = { ...whole, programs, faults, maxTicks: 1 };
      expect(exploreAll(setting, 1_000_000).states).toBe(worldsOf(setting).size);
    },
  );

  test.each([
    ['writer', 'reader'],
    ['child', 'writer'],
    ['anonymous', 'reader'],
    ['timed-reader', 'writer'],
  ] as const)(
    'two of %s and one of %s, started in order: every state is reached, at least with the two swapped',
    (twin, other) => {
      const setting: Setting = {
        ...whole,
        programs: [twin, twin, other],
        faults: { crash: 1 },
        isCalm: true,
        maxTicks: 1,
      };
      const inOrder = worldsOf({ ...setting, doTwinsBeginInOrder: true });
      const all = worldsOf(setting);
      expect(inOrder.size).toBeLessThan(all.size);
      const missing = [...all].find(([text, world]) => !inOrder.has(text) && !inOrder.has(swapped(world)));
      expect(missing).toBeUndefined();
    },
  );

  const crowd: readonly Program[] = [
    ...(['reader', 'reader', 'timed-reader', 'timed-reader', 'head', 'other', 'checker'] as const),
    ...(['writer', 'writer', 'writer', 'child', 'child', 'anonymous', 'anonymous'] as const),
    ...(['deleter', 'creator'] as const),
  ];
  test(`${walks} random orders of a crowd under every fault: no lost update, nothing stuck`, () => {
    const faults = {
      ...{ crash: 2, wipe: 1, restart: 1, restore: 1, failover: 1 },
      ...{ 'end-lost': 1, 'end-again': 2, 'slow-claim': 2 },
    };
    const setting: Setting = { ...whole, programs: crowd, faults, maxTicks: 30 };
    expect(walkMany(setting, walks).found).toBeNull();
  });

  test(`${walks} random orders around a guarded collection under every fault: no lost update, nothing stuck`, () => {
    const faults = {
      ...{ crash: 2, wipe: 1, restart: 1, restore: 1, failover: 1, evict: 1 },
      ...{ 'end-lost': 1, 'end-again': 2, 'slow-claim': 2 },
    };
    const setting: Setting = { ...whole, programs: guardedCrowd, faults, maxTicks: 30, isGuarded: true };
    expect(walkMany(setting, walks).found).toBeNull();
  });

  test(`${walks} random orders of a crowd in a split brain: no lost update, nothing stuck`, () => {
    const programs: readonly Program[] = [
      ...(['reader', 'timed-reader', 'writer', 'writer'] as const),
      ...(['child', 'anonymous', 'anonymous', 'deleter', 'putter', 'putter'] as const),
    ];
    const setting: Setting = {
      ...whole,
      programs,
      faults: { failover: 1, 'end-again': 1, crash: 1 },
      maxTicks: 30,
    };
    expect(walkMany(setting, walks).found).toBeNull();
  });
});

/** Every reachable world, by its JSON. */
function worldsOf(setting: Setting): Map<string, World> {
  const seen = new Map<string, World>();
  const worlds = [createWorld(setting)];
  for (let world = worlds.pop(); world !== undefined; world = worlds.pop()) {
    const text = JSON.stringify(world);
    if (seen.has(text)) continue;
    seen.set(text, world);
    for (const action of actionsOf(setting, world)) worlds.push(action.apply(world));
  }
  return seen;
}

/** The JSON of the world with its first two processes swapped. */
function swapped(world: World): string {
  const other = (p: number) => (p < 2 ? 1 - p : p);
  const [first, second, ...rest] = world.processes;
  const text = JSON.stringify({
    ...world,
    processes: [second, first, ...rest].map((each) => ({ ...each, besides: each?.besides.map(other) })),
    pending: world.pending.map((each) => ({ ...each, by: other(each.by), besides: each.besides.map(other) })),
    passed: world.passed.map(other),
    made: world.made.map((each) => ({ ...each, by: other(each.by) })),
  });
  return text.replace(/"token-([01])"/g, (_, p) => `"token-${other(Number(p))}"`);
}
