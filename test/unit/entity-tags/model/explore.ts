import { createRandom } from '../../../resilience/hunt/random.ts';
import { actionsOf } from './actions.ts';
import { timesOf } from './moves.ts';
import { type Action, type Call, createWorld, type Setting, tick, type World } from './world.ts';

export interface Found {
  readonly wrong: string;
  readonly trace: readonly string[];
}

export interface Explored {
  readonly states: number;
  readonly found: Found | null;
}

/**
 * Every state that any order of actions can reach, each once, and one of those that differ only in which of two processes
 * with the same program is called the first; ends at the first violation.
 */
export function exploreAll(given: Setting, maxStates: number): Explored {
  // A failover goes by their numbers.
  const setting: Setting = { ...given, doTwinsBeginInOrder: given.faults.failover === undefined };
  const seen = new Worlds();
  const stack: Next[] = [{ world: createWorld(setting), trace: null }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { trace } = next;
    if (next.world.wrong !== null)
      return { states: seen.size, found: { wrong: next.world.wrong, trace: unroll(trace) } };
    const world = seen.keep(next.world);
    if (world === undefined) continue;
    if (seen.size > maxStates) throw new Error(`more than ${maxStates} states`);
    for (const action of actionsOf(setting, world))
      stack.push({ world: action.apply(world), trace: { name: action.name, before: trace } });
  }
  return { states: seen.size, found: null };
}

/** A world to look at. */
interface Next {
  readonly world: World;
  readonly trace: Trace | null;
}

interface Part {
  readonly part: unknown;
  /** The only one of its text. */
  readonly number: number;
}

/**
 * A million worlds are made of a few thousand parts: each is kept once and has a number, and the numbers of its parts
 * are the key of a world. Two worlds have the same key when they are the same, written out, and only then.
 */
class Worlds {
  readonly #parts = new Map<unknown, Part>();
  readonly #seen = new Set<string>();

  get size(): number {
    return this.#seen.size;
  }

  /** The world, made of the parts that are kept. Undefined: it was there before. */
  keep(world: World): World | undefined {
    const key: number[] = [];
    const keep = <T>(part: T): T => {
      const kept = this.#partOf(part);
      key.push(kept.number);
      return kept.part as T;
    };
    // Each field of the world stands here, or the types would not agree.
    const shared: World = {
      now: keep(world.now),
      shop: keep(world.shop),
      store: keep(world.store),
      old: keep(world.old),
      replica: keep(world.replica),
      disk: keep(world.disk),
      pending: keep(world.pending),
      passed: keep(world.passed),
      made: keep(world.made),
      held: keep(world.held),
      drawn: keep(world.drawn),
      faults: keep(world.faults),
      wrong: keep(world.wrong),
      processes: world.processes.map(keep),
    };
    const before = this.#seen.size;
    return this.#seen.add(String.fromCharCode(...key)).size === before ? undefined : shared;
  }

  #partOf(part: unknown): Part {
    const known = this.#parts.get(part);
    if (known !== undefined) return known;
    const text = JSON.stringify(part);
    let kept = this.#parts.get(text);
    if (kept === undefined) {
      kept = { part, number: this.#parts.size };
      if (kept.number > 0xffff) throw new Error('more parts than a key has numbers for');
      // By their text, and by themselves: most parts of a world are those of the world that it was made of.
      this.#parts.set(text, kept).set(part, kept);
    }
    return kept;
  }
}

interface Trace {
  readonly name: string;
  readonly before: Trace | null;
}

function unroll(trace: Trace | null): string[] {
  const names: string[] = [];
  for (let each = trace; each !== null; each = each.before) names.unshift(each.name);
  return names;
}

export interface Walk {
  readonly world: World;
  readonly found: Found | null;
  readonly calls: readonly Call[];
}

/** One random order of actions until nothing is left to do. */
export function walk(setting: Setting, seed: number): Walk {
  const { next: random } = createRandom(seed * 0x9e3779b9);
  const calls: Call[] = [];
  const trace: string[] = [];
  let world = createWorld(setting);
  // Some actors are quick and some are slow, and now and then that changes: rare orders come up far more often than
  // when all are alike.
  let speeds = new Map<string, number>();
  const speedOf = ({ name }: Action) => {
    const actor = actorOf(name);
    const speed = speeds.get(actor) ?? random() ** 6;
    speeds.set(actor, speed);
    return speed;
  };
  for (;;) {
    if (world.wrong !== null) return { world, found: { wrong: world.wrong, trace }, calls };
    const actions = actionsOf(setting, world, (call) => calls.push(call));
    if (actions.length === 0 || trace.length > 300) return { world, found: null, calls };
    if (random() < 0.1) speeds = new Map();
    const action = pick(actions, speedOf, random());
    trace.push(action.name);
    world = action.apply(world);
  }
}

/** By the name of an action, of which there are few: walks ask for each very often. */
const actors = new Map<string, string>();

function actorOf(name: string): string {
  const known = actors.get(name);
  if (known !== undefined) return known;
  const actor = /^\S+ ?\d*/.exec(name)?.[0] ?? name;
  actors.set(name, actor);
  return actor;
}

function pick(actions: readonly Action[], speedOf: (action: Action) => number, at: number): Action {
  const speeds = actions.map(speedOf);
  let left = at * speeds.reduce((sum, speed) => sum + speed, 0);
  const i = speeds.findIndex((speed) => {
    left -= speed;
    return left < 0;
  });
  return (actions[i] ?? actions[0]) as Action;
}

/** Walks until the first violation. */
export function walkMany(
  setting: Setting,
  walks: number,
  firstSeed = 1,
): { walks: number; found: Found | null } {
  for (let i = 0; i < walks; i += 1) {
    const { world, found } = walk(setting, firstSeed + i);
    if (found !== null) return { walks: i + 1, found };
    if (!isServing(setting, world)) return { walks: i + 1, found: { wrong: 'stuck', trace: [] } };
  }
  return { walks, found: null };
}

/** Whether, once everything has run out, a read is tagged again and a write with its tag is granted. */
function isServing({ steps, isGuarded, ...setting }: Setting, { store, now }: World): boolean {
  const times = timesOf(setting);
  const isKnown = store.marker !== null && store.marker.id === store.id;
  const epoch = isKnown ? `${store.marker.id}:${store.marker.since}` : `${store.id}:${now}`;
  const { evictedChangeAt } = store;
  const moment = { epoch, since: now, evictedChangeAt, now: now + 100 * tick };
  const open = (record: World['store']['record']) => steps.open(record, moment, times);
  const whole = open(store.whole);
  const member = (record: World['store']['record']) =>
    isGuarded === true ? steps.ofCollection(open(record), whole) : open(record);
  const read = { variant: 'v', newTag: 'new', fingerprint: 'last', shopTag: null, isOfCollection: false };
  const serves = (opened: typeof whole, reopen: typeof open) => {
    const { stamp } = steps.lookUp(opened);
    const step = stamp && steps.endRead(opened, { ...read, stamp }, times);
    if (step?.answer == null) return false;
    const wanted = { token: 'last', tags: [step.answer.tag] };
    const later = reopen(step.record);
    const { answer } =
      isGuarded === true && reopen === member
        ? steps.claimMember(later, whole, wanted, times)
        : steps.claim(later, wanted, times);
    return answer.kind === 'granted';
  };
  return serves(member(store.record), member) && serves(whole, open);
}
