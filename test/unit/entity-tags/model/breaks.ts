import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type * as protocol from '../../../../src/entity-tags/protocol.ts';
import { type Break, swap } from '../clocked-scripts.ts';
import { type Fault, type Program, type ProxyBreak, type Setting, ticks } from './world.ts';

/** One rule that is switched off, and a world in which the model then finds a violation. */
export interface BrokenRule {
  readonly rule: string;
  readonly steps?: readonly Break[];
  /** The same break in the text of the Lua scripts. */
  readonly lua?: readonly Break[];
  readonly proxy?: ProxyBreak;
  readonly ticks?: Partial<typeof ticks>;
  readonly programs: readonly Program[];
  readonly isCalm?: boolean;
  readonly isGuarded?: boolean;
  /** Default 10. */
  readonly maxTicks?: number;
  readonly faults?: Partial<Record<Fault, number>>;
  /** First seed of the search for a walk: saves the earlier ones, which find nothing. Default 1. */
  readonly firstSeed?: number;
}

export const brokenRules: readonly BrokenRule[] = [
  {
    rule: '3: send-by counts from before the claim',
    proxy: 'send-by-from-the-answer',
    isCalm: true,
    firstSeed: 7_694,
    programs: ['timed-reader', 'timed-reader', 'writer', 'writer'],
  },
  {
    rule: '3: B + S + e <= L',
    ticks: { lease: 1, landing: 2 },
    isCalm: true,
    programs: ['reader', 'timed-reader', 'writer', 'writer'],
    maxTicks: 3,
  },
  {
    rule: '3: cold start >= L',
    ticks: { coldStart: 0 },
    isCalm: true,
    firstSeed: 42_362,
    programs: ['reader', 'reader', 'reader', 'writer', 'writer'],
    faults: { restart: 1 },
    maxTicks: 3,
  },
  {
    rule: '3: a record outlives the longest read',
    proxy: 'expiry-any-time',
    programs: ['timed-reader', 'timed-reader', 'reader', 'writer', 'writer', 'child', 'child'],
    faults: { expire: 1 },
  },
  {
    rule: '3: an evicted record leaves the time of its last change',
    proxy: 'eviction-forgets-the-change',
    programs: ['reader', 'reader', 'writer', 'child'],
    faults: { evict: 1 },
    maxTicks: 3,
  },
  {
    rule: '5: a new record counts as changed when the last evicted one was',
    steps: [{ search: '    changedAt: evictedChangeAt,', replace: '    changedAt: 0,' }],
    programs: ['reader', 'reader', 'writer', 'child'],
    faults: { evict: 1 },
    maxTicks: 3,
  },
  {
    rule: '4: the identity of the data is read in the script that uses them',
    proxy: 'identity-noticed-late',
    isCalm: true,
    programs: ['reader', 'writer', 'writer'],
    faults: { restore: 1 },
  },
  {
    rule: '4: a record of another identity is absent',
    steps: [{ search: 'stored.epoch === epoch', replace: 'true' }],
    lua: [
      { search: 'if not is_current(f[1]) then return nil end', replace: 'if not f[1] then return nil end' },
    ],
    isCalm: true,
    firstSeed: 282_216,
    programs: ['reader', 'head', 'writer', 'writer'],
    maxTicks: 5,
    faults: { restore: 1 },
  },
  {
    rule: '4: after an expired lease there is no tag',
    steps: [
      {
        search: '...replaced(record, lease.until, lease.tagged),',
        replace: '...record,',
      },
    ],
    lua: [
      {
        search: 'then change(r, table.remove(r.leases, i).until_, lease.tagged) end',
        replace: 'then table.remove(r.leases, i) end',
      },
    ],
    programs: ['reader', 'writer', 'writer'],
    faults: { crash: 1 },
  },
  {
    rule: '4: an expired lease counts as a change',
    firstSeed: 2_161,
    steps: [
      {
        search: '...replaced(record, lease.until, lease.tagged),',
        replace: '...changed(record, 0),',
      },
    ],
    lua: [
      {
        search: 'then change(r, table.remove(r.leases, i).until_, lease.tagged) end',
        replace: 'then table.remove(r.leases, i) change(r, 0) end',
      },
    ],
    programs: ['reader', 'reader', 'writer', 'child'],
    faults: { crash: 1 },
  },
  {
    rule: '4, 5: either no stamp is given while a write is indeterminate, or its end counts as a change',
    steps: [
      {
        search: "unsettled === 'cold-start' || isIndeterminate(record)",
        replace: "unsettled === 'cold-start'",
      },
      {
        search: 'record = { ...after, indeterminateUntil: 0, indeterminateTagged: false };',
        replace: 'record = { ...record, indeterminateUntil: 0, indeterminateTagged: false };',
      },
    ],
    programs: ['reader', 'child', 'writer'],
  },
  {
    rule: '6: the start of a read is checked during a lease too',
    firstSeed: 82_373,
    steps: [
      {
        search: 'if (!isUnchangedSince(opened, read.stamp, times)) {',
        replace: 'if (!isLeased(record) && !isUnchangedSince(opened, read.stamp, times)) {',
      },
    ],
    lua: [{ search: 'if not unchanged() then', replace: 'if not leased and not unchanged() then' }],
    programs: ['reader', 'reader', 'writer', 'child', 'writer'],
    maxTicks: 1,
  },
  {
    rule: '7: a read began after the last change',
    firstSeed: 1_624,
    steps: [{ search: 'startedAt > (record?.changedAt ?? evictedChangeAt) &&', replace: '' }],
    lua: [{ search: 'stamp_started > (record and record.changed or FLOOR) and', replace: '' }],
    programs: ['timed-reader', 'child', 'writer'],
  },
  {
    rule: '7 (corrected): the start of a read is not computed from a duration that was measured before the script runs',
    proxy: 'duration-measured-late',
    programs: ['timed-reader', 'child', 'writer'],
  },
  {
    rule: '8: no other write while one with a tag is unknown',
    firstSeed: 2_126,
    steps: [
      {
        search: 'if (isIndeterminate(record) && (tagged || record?.indeterminateTagged === true))',
        replace: 'if (false)',
      },
    ],
    lua: [
      {
        search: "if indeterminate and (tagged == '1' or record.indeterminate_tagged == '1') then",
        replace: 'if false then',
      },
    ],
    programs: ['reader', 'writer', 'child'],
    maxTicks: 1,
  },
  {
    rule: '8: no write without a tag runs during one with a tag',
    steps: [
      { search: 'leases.length < maxLeases && leases.every(({ tagged }) => !tagged)', replace: 'true' },
    ],
    lua: [{ search: '#r.leases < MAX_LEASES and not tagged_runs', replace: 'true' }],
    isCalm: true,
    programs: ['reader', 'writer', 'child'],
    maxTicks: 2,
  },
  {
    rule: '8: no write with a tag runs during one without a tag',
    steps: [{ search: 'tagged ? leases.length > 0 :', replace: 'tagged ? false :' }],
    lua: [{ search: "if tagged == '1' and leased or", replace: 'if' }],
    isCalm: true,
    programs: ['reader', 'child', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '8: a claim that arrives after its deadline is refused',
    proxy: 'claim-without-deadline',
    isCalm: true,
    programs: ['reader', 'writer', 'child'],
    faults: { 'slow-claim': 1 },
    maxTicks: 3,
  },
  {
    rule: '9: two concurrent writes leave no tag',
    steps: [
      { search: 'isIndeterminate(record) || leases.length > 0;', replace: 'isIndeterminate(record);' },
      { search: 'leases: [...taint(leases), lease]', replace: 'leases: [...leases, lease]' },
    ],
    lua: [
      { search: "(indeterminate or leased) and '1'", replace: "indeterminate and '1'" },
      { search: "taint(r)\nif tagged == '1' then r.wanted", replace: "if tagged == '1' then r.wanted" },
    ],
    isCalm: true,
    programs: ['child', 'child', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '9: an applied write counts as a change',
    firstSeed: 10_714,
    steps: [
      {
        search: 'const after: TagRecord = { ...replaced(record, now, lease.tagged), leases };',
        replace: 'const after: TagRecord = { ...changed(record, 0), leases };',
      },
    ],
    lua: [
      {
        search:
          "change(r, now, lease.tagged)\nif outcome == 'unknown' then mark_indeterminate(r, lease.until_",
        replace: "change(r, 0)\nif outcome == 'unknown' then mark_indeterminate(r, lease.until_",
      },
    ],
    programs: ['reader', 'reader', 'writer', 'writer'],
  },
  {
    rule: '9: an unknown write keeps the resource indeterminate until its lease would have ended',
    firstSeed: 22_497,
    steps: [
      {
        search: 'return { record: markIndeterminate(after, lease.until, lease.tagged), answer: null };',
        replace: 'return { record: after, answer: null };',
      },
    ],
    lua: [
      {
        search: "if outcome == 'unknown' then mark_indeterminate(r, lease.until_, lease.tagged) end",
        replace: '',
      },
    ],
    programs: ['reader', 'reader', 'writer', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '9: a writer that lost its lease overwrites nothing',
    firstSeed: 1_305,
    steps: [
      { search: 'record?.leases.find(({ token }) => token === write.token)', replace: 'record?.leases[0]' },
    ],
    lua: [{ search: 'if lease.token == token then return i end', replace: 'if true then return i end' }],
    isCalm: true,
    programs: ['reader', 'child', 'child', 'writer'],
    maxTicks: 8,
  },
  {
    rule: "17: an anonymous client's change is marked",
    proxy: 'no-mark',
    isCalm: true,
    programs: ['reader', 'anonymous', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '17: the mark removes the tag, and no read that began before it sets another',
    steps: [
      {
        search: 'const late = replaced(record ?? createRecord(epoch, evictedChangeAt), now, write.tagged);',
        replace: 'const late = record ?? createRecord(epoch, evictedChangeAt);',
      },
    ],
    lua: [{ search: 'change(r, now, tagged)\n  taint(r)', replace: 'taint(r)' }],
    isCalm: true,
    programs: ['reader', 'anonymous', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '17: a write during which an anonymous client changed something leaves no tag',
    steps: [{ search: 'leases: taint(late.leases), anonymousWrote', replace: 'anonymousWrote' }],
    lua: [{ search: 'change(r, now, tagged)\n  taint(r)', replace: 'change(r, now, tagged)' }],
    isCalm: true,
    programs: ['child', 'anonymous', 'writer'],
    maxTicks: 2,
  },
  {
    rule: "17: an anonymous client's write is refused while a write with a tag runs",
    steps: [
      {
        search: 'Math.max(wantedUntil, priorityUntil ?? 0, ...tagged)',
        replace: 'Math.max(wantedUntil, priorityUntil ?? 0)',
      },
    ],
    lua: [{ search: "    if lease.tagged == '1' then busy_until", replace: '    if false then busy_until' }],
    isCalm: true,
    programs: ['reader', 'writer', 'anonymous'],
    maxTicks: 2,
  },
  {
    rule: "17: an anonymous client's write is refused while a write with a tag is unknown",
    firstSeed: 2_068,
    steps: [
      {
        search: "if (indeterminateTagged) return { kind: 'indeterminate'",
        replace: "if (false) return { kind: 'indeterminate'",
      },
    ],
    lua: [
      {
        search: "if r.indeterminate_tagged == '1' then return answer('indeterminate'",
        replace: "if false then return answer('indeterminate'",
      },
    ],
    programs: ['reader', 'writer', 'anonymous'],
    maxTicks: 1,
  },
  { rule: '10: 5xx is unknown', proxy: '5xx-is-refused', programs: ['reader', 'writer', 'writer'] },
  {
    rule: '11: the clock is read before the write is sent',
    proxy: 'no-look',
    isCalm: true,
    programs: ['timed-reader', 'timed-reader', 'writer', 'writer'],
  },
  {
    rule: '11: reading the clock and sending the write are one step',
    proxy: 'look-then-write',
    isCalm: true,
    programs: ['timed-reader', 'timed-reader', 'writer', 'writer'],
  },
  {
    rule: '12: a creation does not answer with the current tag',
    proxy: 'creation-takes-the-current-tag',
    programs: ['reader', 'deleter', 'creator', 'child', 'writer'],
    maxTicks: 1,
  },
  {
    rule: '13: a deleted member keeps no tag',
    proxy: 'delete-keeps-a-tag',
    programs: ['reader', 'deleter', 'creator', 'writer', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '18: a creation is not granted while a tag is current',
    steps: [{ search: '!tags.includes(record?.tag ?? noTag)', replace: '!tags.includes(noTag)' }],
    lua: [{ search: "tag == (record and record.tag or '')", replace: "tag == ''" }],
    isCalm: true,
    programs: ['reader', 'putter'],
    maxTicks: 1,
  },
  {
    rule: '18: a creation needs a lease',
    proxy: 'creation-takes-no-lease',
    isCalm: true,
    programs: ['reader', 'deleter', 'putter', 'putter'],
    maxTicks: 2,
  },
  {
    rule: '18: a tag names the variant',
    proxy: 'tag-without-variant',
    isCalm: true,
    programs: ['reader', 'other', 'checker'],
    maxTicks: 2,
  },
  {
    rule: '16: a claim counts only when the replicas have it',
    proxy: 'no-wait-for-replicas',
    isCalm: true,
    firstSeed: 45_392,
    programs: ['reader', 'writer', 'head', 'idle', 'reader', 'idle', 'writer'],
    faults: { failover: 1 },
    maxTicks: 5,
  },
  {
    rule: '16: a write without a lease is sent only when the replicas confirm it',
    proxy: 'pass-without-replicas',
    isCalm: true,
    // The anonymous client and the idle process are on one side of the split brain, the other processes on the other side.
    programs: ['head', 'anonymous', 'reader', 'idle', 'writer'],
    faults: { failover: 1 },
    maxTicks: 4,
  },
  {
    rule: '19: a write of the collection waits for writes of its members',
    steps: [
      {
        search: "if (whole.answer.kind === 'granted') return { ...own, collection: whole.record };",
        replace: "if (whole.answer.kind === 'granted') return { ...own, collection: collection.record };",
      },
    ],
    lua: [{ search: 'if also_granted ~= true then save(also_granted) end', replace: '' }],
    isCalm: true,
    isGuarded: true,
    programs: ['lister', 'child', 'batch'],
    maxTicks: 2,
  },
  {
    rule: '19: a write of a member waits for a write of the collection',
    steps: [
      {
        search: 'return { record: member.record, collection: whole.record, answer: whole.answer };',
        replace: 'return { ...own, collection: collection.record };',
      },
    ],
    lua: [
      { search: 'if not also_granted then return other end', replace: '' },
      { search: 'if also_granted ~= true then', replace: 'if also_granted and also_granted ~= true then' },
    ],
    isCalm: true,
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '19: a POST excludes all other writes of the collection',
    steps: [{ search: 'tags !== null || wanted.isWhole === true', replace: 'tags !== null' }],
    lua: [
      { search: "if tagged == 'w' then tagged = '1' end", replace: "if tagged == 'w' then tagged = '0' end" },
    ],
    isCalm: true,
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '19: a write of a member changes the collection',
    steps: [
      {
        search: 'tagged: false, newTag: null, shopTag: null }, times);',
        replace: "outcome: 'unsent' }, times);",
      },
    ],
    lua: [
      {
        search: "finish(tagged == 'o' and 'o' or '0', '', '')",
        replace: "changes_nothing = true\n  finish('0', '', '')",
      },
    ],
    isCalm: true,
    isGuarded: true,
    programs: ['lister', 'child', 'batch'],
    maxTicks: 2,
  },
  {
    rule: '19: a write of the collection invalidates the older tags of its members',
    steps: [{ search: 'replacedAt: Math.max(after.replacedAt, at + 1)', replace: 'replacedAt: 0' }],
    lua: [{ search: "if tagged == '1' then r.replaced = math.max(r.replaced, at + 1) end", replace: '' }],
    isCalm: true,
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
    maxTicks: 2,
  },
  {
    rule: '19: an expired lease of the collection counts as a write of it',
    steps: [
      { search: 'replaced(record, lease.until, lease.tagged)', replace: 'changed(record, lease.until)' },
    ],
    lua: [
      {
        search: 'table.remove(r.leases, i).until_, lease.tagged)',
        replace: 'table.remove(r.leases, i).until_)',
      },
    ],
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
    faults: { crash: 1 },
  },
  {
    rule: '19: an unknown write of the collection counts until its lease would have ended',
    steps: [
      {
        search: 'replaced(record, record.indeterminateUntil, record.indeterminateTagged)',
        replace: 'changed(record, record.indeterminateUntil)',
      },
    ],
    lua: [
      { search: 'change(r, r.indeterminate, r.indeterminate_tagged)', replace: 'change(r, r.indeterminate)' },
    ],
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
  },
  {
    rule: '19: a write of the collection invalidates tags of members that are as old as itself',
    steps: [{ search: 'at + 1)', replace: 'at)' }],
    lua: [{ search: 'at + 1)', replace: 'at)' }],
    isGuarded: true,
    programs: ['reader', 'reader', 'child', 'poster', 'writer'],
  },
  {
    rule: '19: an evicted collection leaves the time of its last change',
    steps: [{ search: 'whole?.replacedAt ?? collection.evictedChangeAt', replace: 'whole?.replacedAt ?? 0' }],
    isCalm: true,
    isGuarded: true,
    programs: ['reader', 'poster', 'writer'],
    faults: { evict: 1 },
    maxTicks: 3,
  },
  {
    rule: '19: a new record of a collection counts as written when the last evicted one was',
    steps: [{ search: 'replacedAt: evictedChangeAt,', replace: 'replacedAt: 0,' }],
    isCalm: true,
    isGuarded: true,
    programs: ['reader', 'poster', 'lister', 'writer'],
    faults: { evict: 1 },
    maxTicks: 3,
  },
];

/** The module of the pure steps, with these edits. */
export async function breakSteps(edits: readonly Break[]): Promise<typeof protocol> {
  const protocolFile = new URL('../../../../src/entity-tags/protocol.ts', import.meta.url);
  // A data: module cannot resolve relative imports, and these import only types.
  const text = readFileSync(protocolFile, 'utf8').replace(/^import [^;]*;$/gm, '');
  const source = stripTypeScriptTypes(edits.reduce(swap, text));
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(source)}`);
}

/** The setting of a rule. `steps`: broken or not; `isBroken` switches the broken proxy rule and ticks on. */
export function settingOf(rule: BrokenRule, steps: typeof protocol, isBroken: boolean): Setting {
  return {
    programs: rule.programs,
    faults: rule.faults ?? {},
    maxTicks: rule.maxTicks ?? 10,
    isCalm: rule.isCalm ?? false,
    isGuarded: rule.isGuarded ?? false,
    steps,
    broken: isBroken ? rule.proxy : undefined,
    ticks: isBroken ? { ...ticks, ...rule.ticks } : ticks,
  };
}
