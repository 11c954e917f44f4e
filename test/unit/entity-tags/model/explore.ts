import { createRandom } from '../../../resilience/hunt/random.ts';
import { actionsOf } from './actions.ts';
import { timesOf } from './moves.ts';
import { type Action, type Call, createWorld, type Setting, tick, type World } from './world.ts';

export interface Found {
  readonly wrong: string;
  readonly trace: readonly string[];
}

/**
 * Visits every state that any order of actions can reach, once each, and stops at the first violation. Of states that
 * differ only by a swap of two processes with the same program it visits one.
 */
export function exploreAll(
  given: Setting,
  maxStates: number,
): { readonly states: number; readonly found: Found | null } {
  // In a failover the processes are split by number, so a swap matters.
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

/** A world to visit. */
interface Next {
  readonly world: World;
  readonly trace: Trace | null;
}

interface Part {
  readonly part: unknown;
  /** Unique for each text. */
  readonly number: number;
}

/**
 * A million worlds share a few thousand parts. Each part is kept once and has a number; the numbers of its parts are the
 * key of a world. Two worlds have the same key exactly if their JSON is the same.
 */
class Worlds {
  readonly #parts = new Map<unknown, Part>();
  readonly #seen = new Set<string>();

  get size(): number {
    return this.#seen.size;
  }

  /** The world, made of the kept parts. Undefined if it is already known. */
  keep(world: World): World | undefined {
    const key: number[] = [];
    const keep = <T>(part: T): T => {
      const kept = this.#partOf(part);
      key.push(kept.number);
      return kept.part as T;
    };
    // The type requires every field of World here.
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
      copies: keep(world.copies),
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
      // Indexed by text and by identity, because most parts of a world are the same objects as in the world before it.
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

/** One random order of actions until nothing is left to do. */
export function walk(setting: Setting, seed: number) {
  const { next: random } = createRandom(seed * 0x9e3779b9);
  const calls: Call[] = [];
  const trace: string[] = [];
  let world = createWorld(setting);
  // Actors have different speeds, which change now and then. Rare orders come up far more often than with equal speeds.
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

/** A cache: there are few names of actions, and walks look each one up very often. */
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

/** Whether a read gets a tag again and a write with it is granted, after all leases have ended. */
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
