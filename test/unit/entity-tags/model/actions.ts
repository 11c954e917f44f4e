import { acknowledge, endUnheard, type Hear, put, stepsOf } from './moves.ts';
import { type Action, type Fault, type Setting, tick, type World } from './world.ts';

/** All actions that are possible in this world. */
export function actionsOf(setting: Setting, world: World, hear: Hear = () => {}): Action[] {
  if (world.wrong !== null) return [];
  const actions: Action[] = world.processes.flatMap((_, p) =>
    hasToWaitForTwin(setting, world, p)
      ? []
      : stepsOf(setting, world, p, hear).map(([name, apply]) => ({ name, apply })),
  );
  for (let i = 0; i < world.pending.length; i += 1) actions.push(...shopActions(setting, world, i));
  const isFree = world.pending.every(({ landBy }) => landBy > world.now);
  if (isFree && world.now < (100 + setting.maxTicks) * tick) {
    actions.push({
      name: 'time',
      apply: () => {
        const now = world.now + tick;
        hear({ kind: 'time', now });
        return { ...world, now };
      },
    });
  }
  actions.push(...faultActions(setting, world, hear));
  return actions;
}

function hasToWaitForTwin({ doTwinsBeginInOrder }: Setting, { processes }: World, p: number): boolean {
  const program = processes[p]?.program;
  return (
    doTwinsBeginInOrder === true &&
    processes.slice(0, p).some((other) => other.program === program && other.at === 0 && !other.isDone)
  );
}

/** What the shop may do with a pending write: apply it (with or without an answer), refuse it, or lose it. */
function shopActions(setting: Setting, world: World, i: number): Action[] {
  const write = world.pending[i];
  const writer = write === undefined ? undefined : world.processes[write.by];
  if (write === undefined || writer === undefined) return [];
  const isOpen = writer.program === 'anonymous';
  const rest = { ...world, pending: world.pending.filter((_, other) => other !== i) };
  const tell = (from: World, outcome: 'applied' | 'refused' | 'unknown', took: number) =>
    writer.at === 3 && !writer.isDone ? put(from, write.by, { outcome, took }) : from;
  const vanish: Action = { name: `vanish ${write.by}`, apply: () => rest };
  if (!world.shop.exists && !['putter', 'batch', 'poster'].includes(writer.program)) {
    return [{ name: `refuse ${write.by}`, apply: () => tell(rest, 'refused', 0) }, vanish];
  }
  const land = (answer: 'applied' | 'unknown'): World => {
    const version = world.shop.version + 1;
    const isLost = write.basedOn !== null && !isBasedOn(world, write.basedOn, write.besides);
    const made = isOpen ? [...world.made, { version, by: write.by }] : world.made;
    const exists = writer.program === 'batch' ? world.shop.exists : writer.program !== 'deleter';
    const shop = { ...world.shop, version, exists };
    const wrong = isLost ? `a lost update: written on ${write.basedOn}, was ${world.shop.version}` : null;
    const seen = answer === 'unknown' && setting.broken === '5xx-is-refused' ? 'refused' : answer;
    return tell({ ...rest, shop, made, wrong }, seen, version);
  };
  const landing: Action = { name: `land ${write.by}`, apply: () => land('applied') };
  if (setting.isCalm === true) return [landing];
  return [
    landing,
    { name: `land ${write.by}, answer lost`, apply: () => land('unknown') },
    { name: `refuse ${write.by}`, apply: () => tell(rest, 'refused', 0) },
    vanish,
  ];
}

/** Whether every later version was made by an anonymous client that had been let through when the write was granted. */
function isBasedOn({ shop, made }: World, version: number, besides: readonly number[]): boolean {
  for (let each = version + 1; each <= shop.version; each += 1) {
    if (!made.some((one) => one.version === each && besides.includes(one.by))) return false;
  }
  return true;
}

function faultActions(setting: Setting, world: World, hear: Hear): Action[] {
  const actions: Action[] = [];
  const may = (fault: Fault) => (world.faults[fault] ?? 0) < (setting.faults[fault] ?? 0);
  const count = (fault: Fault): World => ({
    ...world,
    faults: { ...world.faults, [fault]: (world.faults[fault] ?? 0) + 1 },
  });
  const newId = world.store.id + world.replica.id + 1;
  if (may('crash')) {
    for (const [p, { isDone, at }] of world.processes.entries()) {
      if (!isDone && at > 0)
        actions.push({ name: `crash ${p}`, apply: () => put(count('crash'), p, { isDone: true }) });
    }
  }
  if (may('end-lost')) {
    for (const [p, process] of world.processes.entries()) {
      if (process.isDone || process.at !== 4) continue;
      const lost = () => put(count('end-lost'), p, { isDone: true });
      // An anonymous client's mark may be lost: that is a documented limit, so its version does not count as acknowledged.
      const apply = () => (process.program === 'anonymous' ? lost() : acknowledge(lost(), process));
      actions.push({ name: `end of ${p} lost`, apply });
    }
  }
  if (may('end-again')) {
    for (const [p, process] of world.processes.entries()) {
      if (process.isDone || process.at !== 4 || process.program === 'anonymous') continue;
      actions.push(
        { name: `end of ${p} unheard`, apply: () => endUnheard(setting, count('end-again'), p, hear) },
        { name: `end of ${p} fails`, apply: () => acknowledge(count('end-again'), process) },
      );
    }
  }
  if (may('wipe')) {
    actions.push({
      name: 'wipe',
      apply: () => {
        hear({ kind: 'wipe' });
        return { ...count('wipe'), store: { ...world.store, marker: null, record: null, whole: null } };
      },
    });
  }
  if (may('restart')) {
    actions.push({
      name: 'restart',
      apply: () => {
        hear({ kind: 'wipe' });
        hear({ kind: 'id', id: newId });
        const store = { id: newId, marker: null, record: null, whole: null, evictedChangeAt: 0 };
        return { ...count('restart'), store };
      },
    });
  }
  if (may('expire') && setting.broken === 'expiry-any-time') {
    actions.push({
      name: 'expire',
      apply: () => ({ ...count('expire'), store: { ...world.store, record: null } }),
    });
  }
  for (const one of ['record', 'whole'] as const) {
    const record = world.store[one];
    if (!may('evict') || record === null || record.leases.length > 0 || record.indeterminateUntil !== 0)
      continue;
    const isForgotten = setting.broken === 'eviction-forgets-the-change';
    const changedAt = isForgotten ? 0 : Math.max(record.changedAt, record.replacedAt);
    const evictedChangeAt = Math.max(world.store.evictedChangeAt, changedAt);
    actions.push({
      name: one === 'record' ? 'evict' : 'evict the collection',
      apply: () => ({ ...count('evict'), store: { ...world.store, [one]: null, evictedChangeAt } }),
    });
  }
  if (may('restore')) {
    const id = setting.broken === 'identity-noticed-late' ? world.store.id : newId;
    if (world.disk !== world.store)
      actions.push({
        name: 'save',
        apply: () => {
          hear({ kind: 'save' });
          return { ...world, disk: world.store };
        },
      });
    actions.push({
      name: 'restore',
      apply: () => {
        hear({ kind: 'restore' });
        hear({ kind: 'id', id });
        return { ...count('restore'), store: { ...world.disk, id } };
      },
    });
  }
  if (may('failover')) {
    actions.push({ name: 'replicate', apply: () => ({ ...world, replica: world.store }) });
    for (const split of [0, 1]) {
      actions.push({
        name: `failover ${split}`,
        apply: () => ({
          ...count('failover'),
          store: { ...world.replica, id: newId },
          old: world.store,
          processes: world.processes.map((each, p) => ({ ...each, isolated: p % 2 === split })),
        }),
      });
    }
  }
  return actions;
}
