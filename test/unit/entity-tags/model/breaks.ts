import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type * as protocol from '../../../../src/entity-tags/protocol.ts';
import { type Break, swap } from '../clocked-scripts.ts';
import { type Fault, type Program, type ProxyBreak, type Setting, ticks } from './world.ts';

/** A text, its replacement, and perhaps more such pairs. */
type Pairs = readonly [search: string, replace: string, ...more: string[]];

/** One rule that is switched off, and a world in which the model then finds a violation. */
export interface BrokenRule {
  readonly rule: string;
  readonly steps?: Pairs;
  /** The same break in the text of the Lua scripts. */
  readonly lua?: Pairs;
  readonly proxy?: ProxyBreak;
  readonly ticks?: Partial<typeof ticks>;
  /** Programs, and options: see `worldOf`. */
  readonly world: string;
}

export const brokenRules: readonly BrokenRule[] = [
  {
    rule: '3: send-by counts from before the claim',
    proxy: 'send-by-from-the-answer',
    world: 'timed-reader timed-reader writer writer; calm, seed 7694',
  },
  {
    rule: '3: B + S + e <= L',
    ticks: { lease: 1, landing: 2 },
    world: 'reader timed-reader writer writer; calm, ticks 3',
  },
  {
    rule: '3: cold start >= L',
    ticks: { coldStart: 0 },
    world: 'reader reader reader writer writer; calm, restart 1, ticks 3, seed 42362',
  },
  {
    rule: '3: a record outlives the longest read',
    proxy: 'expiry-any-time',
    world: 'timed-reader timed-reader reader writer writer child child; expire 1',
  },
  {
    rule: '3: an evicted record leaves the time of its last change',
    proxy: 'eviction-forgets-the-change',
    world: 'reader reader writer child; evict 1, ticks 3',
  },
  {
    rule: '5: a new record counts as changed when the last evicted one was',
    steps: ['    changedAt: evictedChangeAt,', '    changedAt: 0,'],
    world: 'reader reader writer child; evict 1, ticks 3',
  },
  {
    rule: '4: the identity of the data is read in the script that uses them',
    proxy: 'identity-noticed-late',
    world: 'reader writer writer; calm, restore 1',
  },
  {
    rule: '4: a record of another identity is absent',
    steps: ['stored.epoch === epoch', 'true'],
    lua: ['if not is_current(f[1]) then return nil end', 'if not f[1] then return nil end'],
    world: 'reader head writer writer; calm, restore 1, ticks 5, seed 282216',
  },
  {
    rule: '4: after an expired lease there is no tag',
    steps: ['...replaced(record, lease.until, lease.tagged),', '...record,'],
    lua: [
      'then change(r, table.remove(r.leases, i).until_, lease.tagged) end',
      'then table.remove(r.leases, i) end',
    ],
    world: 'reader writer writer; crash 1',
  },
  {
    rule: '4: an expired lease counts as a change',
    steps: ['...replaced(record, lease.until, lease.tagged),', '...changed(record, 0),'],
    lua: [
      'then change(r, table.remove(r.leases, i).until_, lease.tagged) end',
      'then table.remove(r.leases, i) change(r, 0) end',
    ],
    world: 'reader reader writer child; crash 1, seed 2161',
  },
  {
    rule: '4, 5: either no stamp is given while a write is indeterminate, or its end counts as a change',
    steps: [
      "unsettled === 'cold-start' || isIndeterminate(record)",
      "unsettled === 'cold-start'",
      'record = { ...after, indeterminateUntil: 0, indeterminateTagged: false };',
      'record = { ...record, indeterminateUntil: 0, indeterminateTagged: false };',
    ],
    world: 'reader child writer',
  },
  {
    rule: '6: the start of a read is checked during a lease too',
    steps: [
      'if (!isUnchangedSince(opened, read.stamp, times)) {',
      'if (!isLeased(record) && !isUnchangedSince(opened, read.stamp, times)) {',
    ],
    lua: ['if not unchanged() then', 'if not leased and not unchanged() then'],
    world: 'reader reader writer child writer; ticks 1, seed 82373',
  },
  {
    rule: '7: a read began after the last change',
    steps: ['startedAt > (record?.changedAt ?? evictedChangeAt) &&', ''],
    lua: ['stamp_started > (record and record.changed or FLOOR) and', ''],
    world: 'timed-reader child writer; seed 1624',
  },
  {
    rule: '7 (corrected): the start of a read is not computed from a duration that was measured before the script runs',
    proxy: 'duration-measured-late',
    world: 'timed-reader child writer',
  },
  {
    rule: '8: no other write while one with a tag is unknown',
    steps: ['if (isIndeterminate(record) && (tagged || record?.indeterminateTagged === true))', 'if (false)'],
    lua: ["if indeterminate and (tagged == '1' or record.indeterminate_tagged == '1') then", 'if false then'],
    world: 'reader writer child; ticks 1, seed 2126',
  },
  {
    rule: '8: no write without a tag runs during one with a tag',
    steps: ['leases.length < maxLeases && leases.every(({ tagged }) => !tagged)', 'true'],
    lua: ['#r.leases < MAX_LEASES and not tagged_runs', 'true'],
    world: 'reader writer child; calm, ticks 2',
  },
  {
    rule: '8: no write with a tag runs during one without a tag',
    steps: ['tagged ? leases.length > 0 :', 'tagged ? false :'],
    lua: ["if tagged == '1' and leased or", 'if'],
    world: 'reader child writer; calm, ticks 2',
  },
  {
    rule: '8: a claim that arrives after its deadline is refused',
    proxy: 'claim-without-deadline',
    world: 'reader writer child; calm, slow-claim 1, ticks 3',
  },
  {
    rule: '9: two concurrent writes leave no tag',
    steps: [
      'isIndeterminate(record) || leases.length > 0;',
      'isIndeterminate(record);',
      'leases: [...taint(leases), lease]',
      'leases: [...leases, lease]',
    ],
    lua: [
      "(indeterminate or leased) and '1'",
      "indeterminate and '1'",
      "taint(r)\nif tagged == '1' then r.wanted",
      "if tagged == '1' then r.wanted",
    ],
    world: 'child child writer; calm, ticks 2',
  },
  {
    rule: '9: an applied write counts as a change',
    steps: [
      'const after: TagRecord = { ...replaced(record, now, lease.tagged), leases };',
      'const after: TagRecord = { ...changed(record, 0), leases };',
    ],
    lua: [
      "change(r, now, lease.tagged)\nif outcome == 'unknown' then mark_indeterminate(r, lease.until_",
      "change(r, 0)\nif outcome == 'unknown' then mark_indeterminate(r, lease.until_",
    ],
    world: 'reader reader writer writer; seed 10714',
  },
  {
    rule: '9: an unknown write keeps the resource indeterminate until its lease would have ended',
    steps: [
      'return { record: markIndeterminate(after, lease.until, lease.tagged), answer: null };',
      'return { record: after, answer: null };',
    ],
    lua: ["if outcome == 'unknown' then mark_indeterminate(r, lease.until_, lease.tagged) end", ''],
    world: 'reader reader writer writer; ticks 2, seed 22497',
  },
  {
    rule: '9: a writer that lost its lease overwrites nothing',
    steps: ['record?.leases.find(({ token }) => token === write.token)', 'record?.leases[0]'],
    lua: ['if lease.token == token then return i end', 'if true then return i end'],
    world: 'reader child child writer; calm, ticks 8, seed 1305',
  },
  {
    rule: "17: an anonymous client's change is marked",
    proxy: 'no-mark',
    world: 'reader anonymous writer; calm, ticks 2',
  },
  {
    rule: '17: the mark removes the tag, and no read that began before it sets another',
    steps: [
      'const late = replaced(record ?? createRecord(epoch, evictedChangeAt), now, write.tagged);',
      'const late = record ?? createRecord(epoch, evictedChangeAt);',
    ],
    lua: ['change(r, now, tagged)\n  taint(r)', 'taint(r)'],
    world: 'reader anonymous writer; calm, ticks 2',
  },
  {
    rule: '17: a write during which an anonymous client changed something leaves no tag',
    steps: ['leases: taint(late.leases), anonymousWrote', 'anonymousWrote'],
    lua: ['change(r, now, tagged)\n  taint(r)', 'change(r, now, tagged)'],
    world: 'child anonymous writer; calm, ticks 2',
  },
  {
    rule: "17: an anonymous client's write is refused while a write with a tag runs",
    steps: [
      'Math.max(wantedUntil, priorityUntil ?? 0, ...tagged)',
      'Math.max(wantedUntil, priorityUntil ?? 0)',
    ],
    lua: ["    if lease.tagged == '1' then busy_until", '    if false then busy_until'],
    world: 'reader writer anonymous; calm, ticks 2',
  },
  {
    rule: "17: an anonymous client's write is refused while a write with a tag is unknown",
    steps: [
      "if (indeterminateTagged) return { kind: 'indeterminate'",
      "if (false) return { kind: 'indeterminate'",
    ],
    lua: [
      "if r.indeterminate_tagged == '1' then return answer('indeterminate'",
      "if false then return answer('indeterminate'",
    ],
    world: 'reader writer anonymous; ticks 1, seed 2068',
  },
  { rule: '10: 5xx is unknown', proxy: '5xx-is-refused', world: 'reader writer writer' },
  {
    rule: '11: the clock is read before the write is sent',
    proxy: 'no-look',
    world: 'timed-reader timed-reader writer writer; calm',
  },
  {
    rule: '11: reading the clock and sending the write are one step',
    proxy: 'look-then-write',
    world: 'timed-reader timed-reader writer writer; calm',
  },
  {
    rule: '12: a creation does not answer with the current tag',
    proxy: 'creation-takes-the-current-tag',
    world: 'reader deleter creator child writer; ticks 1',
  },
  {
    rule: '13: a deleted member keeps no tag',
    proxy: 'delete-keeps-a-tag',
    world: 'reader deleter creator writer writer; ticks 2',
  },
  {
    rule: '18: a creation is not granted while a tag is current',
    steps: ['!tags.includes(record?.tag ?? noTag)', '!tags.includes(noTag)'],
    lua: ["tag == (record and record.tag or '')", "tag == ''"],
    world: 'reader putter; calm, ticks 1',
  },
  {
    rule: '18: a creation needs a lease',
    proxy: 'creation-takes-no-lease',
    world: 'reader deleter putter putter; calm, ticks 2',
  },
  {
    rule: '18: a tag names the variant',
    proxy: 'tag-without-variant',
    world: 'reader other checker; calm, ticks 2',
  },
  {
    rule: '16: a claim counts only when the replicas have it',
    proxy: 'no-wait-for-replicas',
    world: 'reader writer head idle reader idle writer; calm, failover 1, ticks 5, seed 45392',
  },
  {
    rule: '16: a write without a lease is sent only when the replicas confirm it',
    proxy: 'pass-without-replicas',
    // The anonymous client and the idle process are on one side of the split brain, the other processes on the other side.
    world: 'head anonymous reader idle writer; calm, failover 1, ticks 4',
  },
  {
    rule: '19: a write of the collection waits for writes of its members',
    steps: [
      "if (whole.answer.kind === 'granted') return { ...own, collection: whole.record };",
      "if (whole.answer.kind === 'granted') return { ...own, collection: collection.record };",
    ],
    lua: ['if also_granted ~= true then save(also_granted) end', ''],
    world: 'lister child batch; calm, guarded, ticks 2',
  },
  {
    rule: '19: a write of a member waits for a write of the collection',
    steps: [
      'return { record: member.record, collection: whole.record, answer: whole.answer };',
      'return { ...own, collection: collection.record };',
    ],
    lua: [
      'if not also_granted then return other end',
      '',
      'if also_granted ~= true then',
      'if also_granted and also_granted ~= true then',
    ],
    world: 'reader poster writer; calm, guarded, ticks 2',
  },
  {
    rule: '19: a POST excludes all other writes of the collection',
    steps: ['tags !== null || wanted.isWhole === true', 'tags !== null'],
    lua: ["if tagged == 'w' then tagged = '1' end", "if tagged == 'w' then tagged = '0' end"],
    world: 'reader poster writer; calm, guarded, ticks 2',
  },
  {
    rule: '19: a write of a member changes the collection',
    steps: ['tagged: false, newTag: null, shopTag: null }, times);', "outcome: 'unsent' }, times);"],
    lua: ["finish(tagged == 'o' and 'o' or '0', '', '')", "changes_nothing = true\n  finish('0', '', '')"],
    world: 'lister child batch; calm, guarded, ticks 2',
  },
  {
    rule: '19: a write of the collection invalidates the older tags of its members',
    steps: ['replacedAt: Math.max(after.replacedAt, at + 1)', 'replacedAt: 0'],
    lua: ["if tagged == '1' then r.replaced = math.max(r.replaced, at + 1) end", ''],
    world: 'reader poster writer; calm, guarded, ticks 2',
  },
  {
    rule: '19: an expired lease of the collection counts as a write of it',
    steps: ['replaced(record, lease.until, lease.tagged)', 'changed(record, lease.until)'],
    lua: ['table.remove(r.leases, i).until_, lease.tagged)', 'table.remove(r.leases, i).until_)'],
    world: 'reader poster writer; guarded, crash 1',
  },
  {
    rule: '19: an unknown write of the collection counts until its lease would have ended',
    steps: [
      'replaced(record, record.indeterminateUntil, record.indeterminateTagged)',
      'changed(record, record.indeterminateUntil)',
    ],
    lua: ['change(r, r.indeterminate, r.indeterminate_tagged)', 'change(r, r.indeterminate)'],
    world: 'reader poster writer; guarded',
  },
  {
    rule: '19: a write of the collection invalidates tags of members that are as old as itself',
    steps: ['at + 1)', 'at)'],
    lua: ['at + 1)', 'at)'],
    world: 'reader reader child poster writer; guarded',
  },
  {
    rule: '19: an evicted collection leaves the time of its last change',
    steps: ['whole?.replacedAt ?? collection.evictedChangeAt', 'whole?.replacedAt ?? 0'],
    world: 'reader poster writer; calm, guarded, evict 1, ticks 3',
  },
  {
    rule: '19: a new record of a collection counts as written when the last evicted one was',
    steps: ['replacedAt: evictedChangeAt,', 'replacedAt: 0,'],
    world: 'reader poster lister writer; calm, guarded, evict 1, ticks 3',
  },
];

export function breaksOf(pairs: readonly string[] = []): Break[] {
  return pairs.flatMap((search, i) => (i % 2 === 0 ? [{ search, replace: pairs[i + 1] ?? '' }] : []));
}

/**
 * Reads a text such as `reader writer; calm, crash 1, ticks 3, seed 7`. Options are `calm`, `guarded`, faults with their
 * number, the most ticks, and the first seed of the search for a walk: the earlier seeds find nothing.
 */
export function worldOf(text: string) {
  const [programs = '', options = ''] = text.split('; ');
  const numbers = options.split(', ').map((option) => option.split(' '));
  const given: Partial<Record<string, number>> = Object.fromEntries(
    numbers.map(([name, number = '1']) => [name, Number(number)]),
  );
  const { calm, guarded, ticks: maxTicks = 10, seed: firstSeed, '': _none, ...faults } = given;
  return {
    programs: programs.split(' ') as Program[],
    faults: faults as Partial<Record<Fault, number>>,
    maxTicks,
    firstSeed,
    isCalm: calm === 1,
    isGuarded: guarded === 1,
  };
}

/** The module of the pure steps, with these edits. */
export async function breakSteps(pairs: Pairs): Promise<typeof protocol> {
  const protocolFile = new URL('../../../../src/entity-tags/protocol.ts', import.meta.url);
  // A data: module cannot resolve relative imports, and these import only types.
  const text = readFileSync(protocolFile, 'utf8').replace(/^import [^;]*;$/gm, '');
  const source = stripTypeScriptTypes(breaksOf(pairs).reduce(swap, text));
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(source)}`);
}

/** The setting of a rule. `steps`: broken or not; `isBroken` switches the broken proxy rule and ticks on. */
export function settingOf(
  { world, proxy, ticks: own }: BrokenRule,
  steps: typeof protocol,
  isBroken: boolean,
): Setting {
  const { firstSeed: _, ...setting } = worldOf(world);
  return {
    ...setting,
    steps,
    broken: isBroken ? proxy : undefined,
    ticks: isBroken ? { ...ticks, ...own } : ticks,
  };
}
