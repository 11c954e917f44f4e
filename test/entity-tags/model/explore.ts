import { actionsOf } from './actions.ts';
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
  const seen = new Worlds(setting.programs.length);
  const stack: Next[] = [{ world: createWorld(setting), from: null, trace: null }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { trace } = next;
    if (next.world.wrong !== null)
      return { states: seen.size, found: { wrong: next.world.wrong, trace: unroll(trace) } };
    const kept = seen.keep(next.world, next.from);
    if (kept === undefined) continue;
    if (seen.size > maxStates) throw new Error(`more than ${maxStates} states`);
    for (const action of actionsOf(setting, kept.world)) {
      stack.push({
        world: action.apply(kept.world),
        from: kept,
        trace: { name: action.name, before: trace },
      });
    }
  }
  return { states: seen.size, found: null };
}

/** A world to look at, made of a world that was looked at. */
interface Next {
  readonly world: World;
  readonly from: Kept | null;
  readonly trace: Trace | null;
}

/** A world made of the parts that are kept, and where its key stands. */
interface Kept {
  readonly world: World;
  readonly at: number;
}

/** Parts of a world besides its processes. */
const partsOfAll = 13;

/**
 * A million worlds are made of a few thousand parts: each is kept once and has a number, and the numbers of its parts
 * are the key of a world. Two worlds have the same key when they are the same, written out, and only then. Most parts of
 * a world are those of the world that it was made of, and are not looked up again.
 *
 * The keys stand one after the other in one array, and are found by open addressing: a set of texts costs twice as much.
 */
class Worlds {
  /** By what they are, written out: a number as it is, so that none is taken for a text. */
  readonly #parts = new Map<unknown, { readonly part: unknown; readonly number: number }>();
  readonly #width: number;
  /** The last one is of the world that is looked at, and is written over when it was there before. */
  #keys: Uint16Array;
  /** By the hash of a key: its place plus one; 0: free. At most half of them are taken. */
  #slots = new Int32Array(4096);
  /** Of the key that is being written, and of the world that its world was made of. */
  #at = 0;
  #fromAt = 0;
  size = 0;

  constructor(processes: number) {
    this.#width = partsOfAll + processes;
    this.#keys = new Uint16Array(this.#width * this.#slots.length);
  }

  /** Undefined: it was there before. */
  keep(world: World, from: Kept | null): Kept | undefined {
    const before = from?.world;
    const start = this.size * this.#width;
    this.#at = start;
    this.#fromAt = from?.at ?? 0;
    // Each field of the world stands here, or the types would not agree.
    const shared: World = {
      now: this.#one(world.now, before?.now),
      shop: this.#one(world.shop, before?.shop),
      store: this.#one(world.store, before?.store),
      old: this.#one(world.old, before?.old),
      replica: this.#one(world.replica, before?.replica),
      disk: this.#one(world.disk, before?.disk),
      pending: this.#one(world.pending, before?.pending),
      passed: this.#one(world.passed, before?.passed),
      made: this.#one(world.made, before?.made),
      held: this.#one(world.held, before?.held),
      drawn: this.#one(world.drawn, before?.drawn),
      faults: this.#one(world.faults, before?.faults),
      wrong: this.#one(world.wrong, before?.wrong),
      processes: world.processes.map((process, p) => this.#one(process, before?.processes[p])),
    };
    if (this.#at !== start + this.#width) throw new Error('a world has more parts than its key');
    return this.#isNew(start) ? { world: shared, at: start } : undefined;
  }

  /** The kept part that is as this one. The parts of a world are asked for in the order of its key. */
  #one<T>(part: T, before: T | undefined): T {
    if (part === before) {
      this.#keys[this.#at++] = this.#keys[this.#fromAt++] as number;
      return part;
    }
    const text = typeof part === 'number' ? part : JSON.stringify(part);
    let kept = this.#parts.get(text);
    if (kept === undefined) {
      kept = { part, number: this.#parts.size };
      if (kept.number > 0xffff) throw new Error('more parts than a key has numbers for');
      this.#parts.set(text, kept);
    }
    this.#keys[this.#at++] = kept.number;
    this.#fromAt++;
    return kept.part as T;
  }

  #isNew(start: number): boolean {
    const slot = this.#slotOf(start);
    if (this.#slots[slot] !== 0) return false;
    this.#slots[slot] = ++this.size;
    if (this.size * 2 > this.#slots.length) this.#grow();
    return true;
  }

  /** The slot of a key that is as this one, or the one that is free for it. */
  #slotOf(start: number): number {
    let hash = 0;
    for (let i = 0; i < this.#width; i++) {
      hash = Math.imul(hash ^ (this.#keys[start + i] as number), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (
      this.#slots[slot] !== 0 &&
      !this.#areSame(((this.#slots[slot] as number) - 1) * this.#width, start)
    ) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #areSame(one: number, other: number): boolean {
    for (let i = 0; i < this.#width; i++) {
      if (this.#keys[one + i] !== this.#keys[other + i]) return false;
    }
    return true;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    const keys = new Uint16Array(this.#width * this.#slots.length);
    keys.set(this.#keys);
    this.#keys = keys;
    for (let i = 0; i < this.size; i++) this.#slots[this.#slotOf(i * this.#width)] = i + 1;
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
  const random = generator(seed);
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
function isServing({ steps, ticks }: Setting, { store, now }: World): boolean {
  const times = {
    lease: ticks.lease * tick,
    coldStart: ticks.coldStart * tick,
    longestRead: 1000 * tick,
  };
  const moment = { epoch: '', since: now, evictedChangeAt: store.evictedChangeAt, now: now + 100 * tick };
  const isKnown = store.marker !== null && store.marker.id === store.id;
  const epoch = isKnown ? `${store.marker.id}:${store.marker.since}` : `${store.id}:${now}`;
  const opened = steps.open(store.record, { ...moment, epoch }, times);
  const { stamp } = steps.lookUp(opened);
  if (stamp === null) return false;
  const read = {
    stamp,
    variant: 'v',
    newTag: 'new',
    fingerprint: 'last',
    shopTag: null,
    isOfCollection: false,
  };
  const { record, answer } = steps.endRead(opened, { ...read }, times);
  if (answer === null) return false;
  const later = steps.open(record, { ...moment, epoch }, times);
  return steps.claim(later, { token: 'last', tags: [answer.tag] }, times).answer.kind === 'granted';
}

/** mulberry32: small, and the same on every machine. */
function generator(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
