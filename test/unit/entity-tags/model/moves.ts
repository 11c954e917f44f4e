import type * as protocol from '../../../../src/entity-tags/protocol.ts';
import { noTag } from '../../../../src/entity-tags/protocol.ts';
import type { Claim, ClaimEnd } from '../../../../src/entity-tags/tag-store.ts';
import {
  type Call,
  type Copy,
  type Process,
  type ProxyBreak,
  type Setting,
  type StoreState,
  type World,
  blank,
  tick,
} from './world.ts';

/** Gets every call of the store, for the replay. */
export type Hear = (call: Call) => void;

/** The possible next steps of a process, each with the world after it. Empty if it waits or is done. */
export function stepsOf(setting: Setting, world: World, p: number, hear: Hear): Array<[string, () => World]> {
  const process = world.processes[p];
  if (process === undefined || process.isDone) return [];
  const go = (name: string, step: () => World): [string, () => World] => [
    `${process.program} ${p}: ${name}`,
    step,
  ];
  switch (process.program) {
    case 'reader':
    case 'other':
    case 'checker':
    case 'timed-reader':
    case 'head':
    case 'lister':
    case 'timed-lister':
    case 'creator':
      return readSteps(setting, world, p, process, hear).map(([name, step]) => go(name, step));
    case 'anonymous':
      return anonymousSteps(setting, world, p, process, hear).map(([name, step]) => go(name, step));
    case 'idle':
      return [];
    default:
      return writeSteps(setting, world, p, process, hear).map(([name, step]) => go(name, step));
  }
}

type Steps = Array<[string, () => World]>;

function readSteps(setting: Setting, world: World, p: number, process: Process, hear: Hear): Steps {
  const isTimed = !['reader', 'other', 'checker', 'lister'].includes(process.program);
  switch (process.at) {
    case 0:
      if (isTimed) return [['begin', () => put(world, p, { at: 1, startedAt: world.now })]];
      {
        const begin = (copy: Copy | null) => () => {
          const [looked, { stamp }] = lookUp(setting, world, p, hear);
          return put(looked, p, stamp === null ? { isDone: true } : { at: 1, stamp, copy });
        };
        if (process.program !== 'checker') return [['read-begin', begin(null)]];
        return copiesOf(world, process).map((copy, i) => [`read-begin with ${i}`, begin(copy)]);
      }
    case 1:
      if (process.program === 'creator') return world.shop.exists ? [] : [['create', () => create(world, p)]];
      if (!world.shop.exists && !isOfWhole(process)) return [['404', () => put(world, p, { isDone: true })]];
      return [['ask the shop', () => put(world, p, { at: 2, version: world.shop.version, took: world.now })]];
    case 2:
      if (setting.broken === 'duration-measured-late' && isTimed) {
        return [['measure', () => put(world, p, { at: 3, took: world.now - process.startedAt })]];
      }
      return [['read-end', () => endRead(setting, world, p, hear)]];
    default:
      return [['read-end', () => endRead(setting, world, p, hear)]];
  }
}

function create(world: World, p: number): World {
  const version = world.shop.version + 1;
  const shop = { version, exists: true, acknowledged: version };
  return put({ ...world, shop }, p, { at: 2, version, took: world.now });
}

function endRead(setting: Setting, world: World, p: number, hear: Hear): World {
  const process = at(world, p);
  const opening = openStore(setting, world, p);
  const { opened } = opening;
  const isLate = setting.broken === 'duration-measured-late';
  const stamp = process.stamp ?? {
    epoch: opened.epoch,
    startedAt: isLate ? world.now - process.took : process.startedAt,
  };
  if (process.program === 'creator' && setting.broken === 'creation-takes-the-current-tag') {
    const tag = opened.record?.tag ?? null;
    return remember(put(world, p, { isDone: true }), process.version, tag, null);
  }
  const variant = variantOf(process);
  const isHead = process.program === 'head';
  const read = {
    stamp,
    variant,
    fingerprint: isHead ? null : fingerprintOf(process.version),
    newTag: newTagOf(world, process),
    shopTag: null,
    isOfCollection: false,
  };
  const step = setting.steps.endRead(opened, read, timesOf(setting));
  const { answer } = step;
  hear({ kind: 'endRead', isOfWhole: isOfWhole(process), read, answer });
  const recorded = opened.record?.fingerprints[variant];
  const after = put(keep(world, p, opening, step), p, { isDone: true });
  if (answer !== null && process.copy !== null) {
    const isKnown = recorded === fingerprintOf(process.version);
    const is304 = isConfirmed304(
      setting,
      process.copy,
      answer.tag,
      'v',
      fingerprintOf(process.version),
      isKnown,
    );
    const isAnother =
      process.copy.variant !== 'v' || fingerprintOf(process.copy.version) !== fingerprintOf(process.version);
    if (is304) return { ...after, wrong: isAnother ? 'a 304 for another representation' : world.wrong };
  }
  return remember(after, process.version, answer?.tag ?? null, isHead ? null : variant);
}

/** Versions alternate between two contents, so that a change and its reversal look the same. */
const fingerprintOf = (version: number) => `f${version % 2}`;

function variantOf({ program }: Process): string {
  if (program === 'creator') return 'c';
  return program === 'other' ? 'w' : 'v';
}

/** Whether `If-None-Match` with the tag of the copy gets a 304. */
function isConfirmed304(
  { broken }: Setting,
  copy: Copy,
  tag: string,
  variant: string,
  fingerprint: string | undefined,
  isKnown: boolean,
): boolean {
  if (copy.tag !== tag || copy.variant === null) return false;
  if (broken === 'tag-without-variant') return isKnown;
  return copy.variant === variant && fingerprintOf(copy.version) === fingerprint;
}

function writeSteps(setting: Setting, world: World, p: number, process: Process, hear: Hear): Steps {
  const isChild = process.program === 'child';
  switch (process.at) {
    case 0: {
      const begin = (version: number, tag: string | null) =>
        put(world, p, { at: 1, version, tag, startedAt: world.now, token: `token-${p}` });
      if (isChild) return [['begin', () => begin(0, null)]];
      if (process.program === 'putter') {
        const tag = setting.broken === 'creation-takes-no-lease' ? null : noTag;
        return [['begin', () => begin(0, tag)]];
      }
      if (process.program === 'poster') return [['begin', () => begin(0, null)]];
      return copiesOf(world, process).map(({ version, tag }, i) => [
        `begin with ${i}`,
        () => begin(version, tag),
      ]);
    }
    case 1:
      return claimSteps(setting, world, p, hear);
    case 7:
      return [
        ['claim arrives', () => claim(setting, world, p, hear)],
        ['give back', () => put(giveBack(setting, world, p, hear), p, { at: 8 })],
      ];
    case 8:
      return [['claim arrives', () => claim(setting, world, p, hear)]];
    case 2:
      if (setting.broken === 'look-then-write') {
        return isLate(setting, world, process)
          ? [['too late', () => put(world, p, { at: 4, outcome: 'unsent' })]]
          : [['look', () => put(world, p, { at: 5 })]];
      }
      return isLate(setting, world, process) && setting.broken !== 'no-look'
        ? [['too late', () => put(world, p, { at: 4, outcome: 'unsent' })]]
        : [['send', () => send(setting, world, p)]];
    case 3:
      if (setting.isCalm === true && process.outcome === null) return [];
      return process.outcome === null
        ? [['time-out', () => put(world, p, { at: 4, outcome: 'unknown' })]]
        : [['answer', () => put(world, p, { at: 4 })]];
    case 6:
      return [['hear the answer', () => put(world, p, { at: 2, startedAt: world.now })]];
    case 5:
      return [['send', () => send(setting, world, p)]];
    default:
      return [['end', () => end(setting, world, p, hear)]];
  }
}

/** A write without a lease: it asks whether it may be sent, and is marked after its outcome. */
function anonymousSteps(setting: Setting, world: World, p: number, process: Process, hear: Hear): Steps {
  switch (process.at) {
    case 0: {
      const pass = () => {
        const wanted = { token: `token-${p}`, tags: null, isAnonymous: true, isOpen: true };
        const [after, answer] = claimStep(setting, world, p, wanted, hear);
        const isGranted =
          answer.kind === 'granted' && isConfirmed(setting, world, p, 'pass-without-replicas');
        if (!isGranted) return put(after, p, { isDone: true });
        const passed = [...world.passed, p];
        return put({ ...after, passed }, p, { at: 2, startedAt: world.now, token: wanted.token });
      };
      return [['pass', pass]];
    }
    case 4:
      return [['mark', () => mark(setting, world, p, hear)]];
    default:
      return writeSteps(setting, world, p, process, hear);
  }
}

function mark(setting: Setting, world: World, p: number, hear: Hear): World {
  const process = at(world, p);
  const { outcome, token } = process;
  const hasChangedNothing = outcome === 'unsent' || outcome === 'refused';
  // If the shop may still act on it, the mark is too early. No second mark follows.
  const mayLand = world.pending.some(({ by }) => by === p);
  const marked = mayLand ? world : { ...world, passed: world.passed.filter((each) => each !== p) };
  if (hasChangedNothing || setting.broken === 'no-mark') return put(marked, p, { isDone: true });
  const applied = { token, tagged: false, outcome: 'applied', newTag: null, shopTag: null } as const;
  const write = { ...applied, isAnonymous: true, isOpen: true };
  const [after] = endStep(setting, marked, p, write, hear);
  return acknowledge(put(after, p, { isDone: true }), process);
}

/** A caller that stops waiting releases its claim, although the claim may still arrive at the store. */
function claimSteps(setting: Setting, world: World, p: number, hear: Hear): Steps {
  const steps: Steps = [['claim', () => claim(setting, world, p, hear)]];
  const times = world.faults['slow-claim'] ?? 0;
  if (times < (setting.faults['slow-claim'] ?? 0) && world.now >= at(world, p).startedAt + tick) {
    const faults = { ...world.faults, 'slow-claim': times + 1 };
    steps.push(['give up', () => put({ ...world, faults }, p, { at: 7 })]);
  }
  return steps;
}

function giveBack(setting: Setting, world: World, p: number, hear: Hear): World {
  const process = at(world, p);
  const { token } = process;
  const write = { token, tagged: isTagged(process), outcome: 'unsent', newTag: null, shopTag: null } as const;
  return endStep(setting, world, p, write, hear)[0];
}

function isLate(setting: Setting, world: World, process: Process): boolean {
  return world.now - process.startedAt >= setting.ticks.sendBy * tick;
}

function claim(setting: Setting, world: World, p: number, hear: Hear): World {
  const process = at(world, p);
  const tags = process.tag === null ? null : [process.tag];
  const isLate = world.now >= process.startedAt + tick && setting.broken !== 'claim-without-deadline';
  if (isLate)
    return process.at === 7 ? put(world, p, { at: 4, outcome: 'unsent' }) : put(world, p, { isDone: true });
  const wanted = { token: process.token, tags, isWhole: process.program === 'poster' };
  const [after, answer] = claimStep(setting, world, p, wanted, hear);
  if (answer.kind !== 'granted') {
    return process.at === 7 ? put(after, p, { at: 4, outcome: 'unsent' }) : put(after, p, { isDone: true });
  }
  if (process.tag === noTag && (openStore(setting, world, p).opened.record?.tag ?? null) !== null)
    return { ...after, wrong: 'a creation over a tag that is current' };
  if (process.at === 8) return { ...after, wrong: 'a lease that no client knows of' };
  if (process.at === 7) return put(after, p, { at: 4, outcome: 'unsent' });
  const next = setting.broken === 'send-by-from-the-answer' ? 6 : 2;
  const granted = put(after, p, { at: next, besides: tags === null ? [] : world.passed });
  if (setting.broken === 'no-wait-for-replicas') return granted;
  if (!isConfirmed(setting, world, p)) return put(after, p, { at: 4, outcome: 'unsent' });
  return { ...granted, replica: granted.store };
}

/** The old primary of a split brain has no replica, so no claim counts there. */
function isConfirmed(setting: Setting, world: World, p: number, unless?: ProxyBreak): boolean {
  return !at(world, p).isolated || world.old === null || (unless !== undefined && setting.broken === unless);
}

function send(setting: Setting, world: World, p: number): World {
  const landBy = world.now + setting.ticks.landing * tick;
  const { program, version, tag, besides } = at(world, p);
  const isCreation = program === 'putter';
  // The shop gets the condition too. It checks the condition first and acts later.
  if (isCreation && world.shop.exists) return put(world, p, { at: 3, outcome: 'invalidated' });
  const basedOn = isCreation ? world.shop.version : tag === null ? null : version;
  return put({ ...world, pending: [...world.pending, { by: p, landBy, basedOn, besides }] }, p, { at: 3 });
}

function end(setting: Setting, world: World, p: number, hear: Hear): World {
  const process = at(world, p);
  const outcome = process.outcome ?? 'unknown';
  const isGone = process.program === 'deleter' && setting.broken !== 'delete-keeps-a-tag';
  const newTag = isGone || process.program === 'poster' ? null : newTagOf(world, process);
  const write = { token: process.token, tagged: isTagged(process), outcome, newTag, shopTag: null };
  const [after, answer] = endStep(setting, world, p, write, hear);
  return acknowledge(remember(put(after, p, { isDone: true }), process.took, answer, null), process);
}

/** The report has its effect, but its reply is lost: no client gets the tag, and the writer reports again. */
export function endUnheard(setting: Setting, world: World, p: number, hear: Hear): World {
  const { processes, copies } = world;
  const ended = end(setting, world, p, hear);
  return { ...ended, processes, copies, drawn: world.drawn + 1 };
}

/** The writer hears that its version is applied. */
export function acknowledge(world: World, process: Process): World {
  if (process.outcome !== 'applied') return world;
  const acknowledged = Math.max(world.shop.acknowledged, process.took);
  return { ...world, shop: { ...world.shop, acknowledged } };
}

function lookUp(setting: Setting, world: World, p: number, hear: Hear) {
  const opening = openStore(setting, world, p);
  const answer = setting.steps.lookUp(opening.opened);
  hear({ kind: 'lookUp', isOfWhole: isOfWhole(at(world, p)), answer });
  return [keepState(world, p, opening.state), answer] as const;
}

/** The records a process works on: that of the collection, or that of the member and of its guarded collection. */
interface Opening {
  readonly of: 'record' | 'whole';
  readonly opened: protocol.Opened;
  readonly whole: protocol.Opened | null;
  readonly state: StoreState;
}

const isOfWhole = ({ program }: Process) =>
  program === 'lister' || program === 'timed-lister' || program === 'batch' || program === 'poster';
/** Whether its write excludes all others. */
const isTagged = ({ program, tag }: Process) => tag !== null || program === 'poster';
const newTagOf = ({ drawn }: World, process: Process) => `${isOfWhole(process) ? 'whole' : 'tag'}-${drawn}`;

function copiesOf({ copies }: World, process: Process): Copy[] {
  return copies.filter(({ tag }) => tag.startsWith('whole') === isOfWhole(process));
}

function claimStep(setting: Setting, world: World, p: number, wanted: Claim, hear: Hear) {
  const opening = openStore(setting, world, p);
  const { opened, whole } = opening;
  const { claim, claimMember } = setting.steps;
  const times = timesOf(setting);
  const step = whole === null ? claim(opened, wanted, times) : claimMember(opened, whole, wanted, times);
  const { answer } = step;
  hear({ kind: 'claim', isOfWhole: isOfWhole(at(world, p)), claim: wanted, answer });
  return [keep(world, p, opening, step), answer] as const;
}

function endStep(setting: Setting, world: World, p: number, write: ClaimEnd, hear: Hear) {
  const opening = openStore(setting, world, p);
  const { opened, whole } = opening;
  const { end, endMember } = setting.steps;
  const times = timesOf(setting);
  const step = whole === null ? end(opened, write, times) : endMember(opened, whole, write, times);
  const { answer } = step;
  hear({ kind: 'end', isOfWhole: isOfWhole(at(world, p)), end: write, answer });
  return [keep(world, p, opening, step), answer] as const;
}

/** The part that every script starts with. */
function openStore(setting: Setting, world: World, p: number): Opening {
  const state = at(world, p).isolated ? (world.old ?? world.store) : world.store;
  const isKnown = state.marker !== null && state.marker.id === state.id;
  const marker = isKnown && state.marker !== null ? state.marker : { id: state.id, since: world.now };
  const epoch = `${marker.id}:${marker.since}`;
  const { evictedChangeAt } = state;
  const moment = { now: world.now, epoch, since: marker.since, evictedChangeAt };
  const openOne = (stored: protocol.TagRecord | null) => setting.steps.open(stored, moment, timesOf(setting));
  const of = isOfWhole(at(world, p)) ? 'whole' : 'record';
  const own = openOne(state[of]);
  const whole = of === 'record' && setting.isGuarded === true ? openOne(state.whole) : null;
  const opened = whole === null ? own : setting.steps.ofCollection(own, whole);
  return { of, opened, whole, state: { ...state, marker } };
}

function keep(
  world: World,
  p: number,
  { of, state }: Opening,
  { record, collection }: protocol.Step<unknown> & Partial<protocol.MemberStep<unknown>>,
): World {
  const after = { ...state, [of]: record };
  return keepState(world, p, collection === undefined ? after : { ...after, whole: collection });
}

function keepState(world: World, p: number, state: StoreState): World {
  return at(world, p).isolated && world.old !== null ? { ...world, old: state } : { ...world, store: state };
}

export function timesOf({ ticks }: Pick<Setting, 'ticks'>) {
  return { lease: ticks.lease * tick, coldStart: ticks.coldStart * tick, longestRead: 1000 * tick };
}

export function put(world: World, p: number, change: Partial<Process>): World {
  // A finished process is reset, so that worlds that differ only in its old values are the same.
  const next = (each: Process) =>
    change.isDone === true ? { ...each, ...blank, isDone: true } : { ...each, ...change };
  return { ...world, processes: world.processes.map((each, i) => (i === p ? next(each) : each)) };
}

function remember(world: World, version: number, tag: string | null, variant: string | null): World {
  if (tag === null) return world;
  const drawn = tag.endsWith(`-${world.drawn}`) ? world.drawn + 1 : world.drawn;
  const isKnown = world.copies.some(
    (each) => each.tag === tag && each.version === version && each.variant === variant,
  );
  return { ...world, drawn, copies: isKnown ? world.copies : [...world.copies, { version, tag, variant }] };
}

function at(world: World, p: number): Process {
  const process = world.processes[p];
  if (process === undefined) throw new Error('no such process');
  return process;
}
