import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from '../../src/redis/redis.ts';
import { buildTokenScripts } from '../../src/refresh-tokens/lua.ts';
import type { TokenSteps } from '../../src/refresh-tokens/memory-store.ts';
import * as steps from '../../src/refresh-tokens/protocol.ts';
import { holder, type SubjectDigest } from '../../src/refresh-tokens/token-store.ts';
import { type SingleRedis, startRedis } from '../harness/redis-processes.ts';
import { contract, type Subject } from './store-contract.ts';
import { connect, memorySubject, redisSubject } from './stores.ts';

/** Each breaks one rule of docs/decisions/refresh-token-states.md; a contract that holds all the same proves nothing. */
const brokenSteps: Readonly<Record<string, Partial<TokenSteps>>> = {
  'a claim does not keep others out': {
    claim: (record, ...rest) => steps.claim({ ...record, claim: null }, ...rest),
  },
  'a claim never lapses': {
    claim: (record, op, _, now) => steps.claim(record, op, 1e12, now),
  },
  'a late confirmation takes a claim that is not its own': {
    confirm: (record, op, ...rest) => steps.confirm(record, record.claim?.op ?? op, ...rest),
  },
  'a late confirmation claims what was released': {
    confirm: (record, op, holdMs, now) =>
      steps.confirm(
        { ...record, claim: record.claim ?? { op, untilMs: now + 1, isIndeterminate: false } },
        op,
        holdMs,
        now,
      ),
  },
  'a claim that has lapsed is confirmed': {
    confirm: (record, op, holdMs) => steps.confirm(record, op, holdMs, 0),
  },
  'a confirmation does not make the claim longer': {
    confirm: (record, op, _, now) => steps.confirm(record, op, (record.claim?.untilMs ?? now) - now, now),
  },
  'a revocation does not overtake a claim': {
    confirm: (record, ...rest) => ({
      ...steps.confirm({ ...record, notes: new Map(), pending: new Map() }, ...rest),
      record,
    }),
  },
  'an unknown outcome reads as a refresh under way': { markIndeterminate: (record) => record },
  'anybody says that the outcome is unknown': {
    markIndeterminate: (record) => steps.markIndeterminate(record, record.claim?.op ?? ''),
  },
  'the word that an outcome is unknown stays with the next claim': {
    claim: (record, ...rest) => {
      const { record: next, answer } = steps.claim(record, ...rest);
      const isIndeterminate = record.claim?.isIndeterminate === true;
      return {
        answer,
        record: next.claim === null ? next : { ...next, claim: { ...next.claim, isIndeterminate } },
      };
    },
  },
  'a token that is refreshed changes its family': {
    markUsed: (record, ...rest) => steps.markUsed({ ...record, family: null }, ...rest),
  },
  'a token that is issued again changes its family': {
    recordIssued: (record, issued, now) => ({
      ...steps.recordIssued(record, issued, now),
      family: issued.family,
    }),
  },
  'the leeway never ends': {
    claim: (record, op, holdMs, now) => {
      const step = steps.claim(record, op, holdMs, now);
      const { answer } = step;
      return answer.kind === 'used'
        ? { ...step, answer: { ...answer, sealed: record.answer?.sealed ?? null } }
        : step;
    },
  },
  'a leeway begins again with every look': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'used' ? { ...step, answer: { ...step.answer, usedForMs: 0 } } : step;
    },
  },
  'a used token loses its family': {
    claim: (record, ...rest) => steps.claim({ ...record, family: null }, ...rest),
  },
  'the book admits everything': { admit: (book) => ({ book, isAdmitted: true }) },
  'one subject fills the book': {
    admit: (book, _, ...rest) => steps.admit(book, null, ...rest),
  },
  'the book has no bound but that of each subject': {
    admit: (book, who, limits, ...rest) => steps.admit(book, who, { ...limits, inAll: Infinity }, ...rest),
  },
  'the page of the book is never turned': {
    admit: (book, who, limits, pageMs) => steps.admit(book, who, limits, pageMs, 0),
  },
  'the book is asked for what is known': {
    noteRevocation: (record, by, op, now, isAdmitted) =>
      isAdmitted() ? steps.noteRevocation(record, by, op, now, () => true) : { record, answer: 'full' },
  },
  'a use that nothing proves is a token': {
    markUsed: (record, use, ...rest) => steps.markUsed(record, { ...use, isProven: true }, ...rest),
  },
  'anybody releases a claim': { release: (record) => ({ ...record, claim: null }) },
  'nobody releases a claim': { release: (record) => record },
  'used is taken back by a release': { release: (record) => ({ ...record, claim: null, usedAtMs: null }) },
  'used counts only for the holder of a claim': {
    markUsed: (record, ...rest) =>
      record.claim === null ? { record, answer: 'full' } : steps.markUsed(record, ...rest),
  },
  'a token that is issued again becomes valid': {
    recordIssued: (record, ...rest) => steps.recordIssued({ ...record, usedAtMs: null }, ...rest),
  },
  'a token that is issued again loses its revocation': {
    recordIssued: (record, ...rest) => steps.recordIssued({ ...record, notes: new Map() }, ...rest),
  },
  'a token that is issued again changes hands': {
    recordIssued: (record, ...rest) => steps.recordIssued({ ...record, life: null, subject: null }, ...rest),
  },
  'expiry does not count': {
    claim: (record, ...rest) => steps.claim({ ...record, life: null }, ...rest),
  },
  'anybody revokes': {
    noteRevocation: (record, _, ...rest) =>
      steps.noteRevocation(record, record.subject ?? ('' as never), ...rest),
  },
  'the holder is a stranger': {
    noteRevocation: (record, by, ...rest) =>
      by === holder && record.subject !== null
        ? { record, answer: 'foreign' }
        : steps.noteRevocation(record, by, ...rest),
  },
  'what its holder ended goes on': {
    claim: (record, ...rest) => {
      const isOwn = ([by]: readonly [SubjectDigest, unknown]) => by !== holder;
      return steps.claim(
        { ...record, notes: new Map([...record.notes].filter(isOwn)), pending: new Map() },
        ...rest,
      );
    },
  },
  "every note counts as its holder's": {
    noteRevocation: (record, _, ...rest) => steps.noteRevocation(record, holder, ...rest),
  },
  'a pending revocation does not count': {
    claim: (record, ...rest) => steps.claim({ ...record, pending: new Map() }, ...rest),
  },
  'a refused revocation stands': {
    settleRevocation: (record, by, op, _, now) => steps.settleRevocation(record, by, op, true, now),
  },
  'a refused revocation takes another one back': {
    settleRevocation: (record, by, op, stands, now) => {
      const settled = steps.settleRevocation(record, by, op, stands, now);
      return stands ? settled : { ...settled, notes: new Map(), pending: new Map() };
    },
  },
  'a revocation is not settled without its note': {
    settleRevocation: (record, by, op, stands, now) =>
      record.pending.has(op) ? steps.settleRevocation(record, by, op, stands, now) : record,
  },
  'a note on an unknown token counts whoever made it': {
    claim: (record, ...rest) => {
      const answer = steps.claim(record, ...rest);
      return record.notes.size > 0 ? { ...answer, answer: { kind: 'revoked' } } : answer;
    },
  },
};

/** Operation, and what of its Lua is replaced by what. */
const brokenScripts: Readonly<Record<string, readonly [string, string, string]>> = {
  'a claim does not keep others out': ['claim', "then return 'in-exchange'", "then return 'valid'"],
  'a claim never lapses': ['claim', "set('cu', int(now + hold))", "set('cu', int(now + 1e12))"],
  'anybody releases a claim': ['release', 'if f.c == ARGV[7] then', 'if f.c then'],
  'a late confirmation takes a claim that is not its own': ['confirm', 'or f.c ~= ARGV[7]', ''],
  'a late confirmation claims what was released': [
    'confirm',
    "state() ~= 'in-exchange' or f.c ~= ARGV[7]",
    'f.c and f.c ~= ARGV[7]',
  ],
  'a claim that has lapsed is confirmed': ['confirm', 'f.c and tonumber(f.cu) > now', 'f.c'],
  'a confirmation does not make the claim longer': ['confirm', "set('cu', int(now + hold))", ''],
  'a confirmed claim of an unknown token goes early': [
    'confirm',
    'if not f.e then outlive(hold) end',
    "redis.call('DEL', TOKEN)",
  ],
  'a revocation does not overtake a claim': ['confirm', 'if revoked() < math.huge', 'if false'],
  'an unknown outcome reads as a refresh under way': ['markIndeterminate', "set('ci', '1')", ''],
  'anybody says that the outcome is unknown': ['markIndeterminate', 'if f.c == ARGV[7]', 'if f.c'],
  'the word that an outcome is unknown stays with the next claim': [
    'claim',
    "redis.call('HDEL', TOKEN, 'ci')",
    '',
  ],
  'a token that is refreshed changes its family': [
    'markUsed',
    "if not f.f then set('f'",
    "if true then set('f'",
  ],
  'the family of an issued token is not kept': ['record', "set('f', ARGV[9])", ''],
  'the family of an unknown token is not kept': ['markUsed', "if not f.f then set('f', ARGV[8]) end", ''],
  'the end of a family is not written': ['endFamily', "redis.call('SET', FAMILY", "redis.call('GET', FAMILY"],
  'every family has ended': ['familyEnd', "redis.call('GET', FAMILY) or ''", "'1'"],
  'the leeway never ends': [
    'claim',
    "if not till or tonumber(till) <= now then sealed = '' end",
    "sealed = sealed or ''",
  ],
  'a leeway begins again with every look': ['claim', 'int(now - tonumber(f.u))', "'0'"],
  'the sealed answer is not kept': ['markUsed', "if ARGV[10] ~= '' then", 'if false then'],
  'one subject fills the book': ['noteRevocation', "(who ~= '' and own >= tonumber(ARGV[4]))", 'false'],
  'the book has no bound but that of each subject': ['markUsed', 'all >= tonumber(ARGV[5])', 'false'],
  'the page of the book is never turned': ['noteRevocation', 'if till <= now then', 'if till == 0 then'],
  'the book is asked for what is known': ['noteRevocation', "if not f.e and not f['n:'", "if not f['n:'"],
  'each note about one token counts': ['noteRevocation', "and not f['n:' .. ARGV[7]]", ''],
  'a use that nothing proves is a token': [
    'markUsed',
    "if not f.e and ARGV[9] == '1' then",
    'if not f.e then',
  ],
  'used is not written': ['markUsed', "if not f.u then set('u', int(now)) end", ''],
  'a token that is issued again becomes valid': [
    'record',
    'if f.u then return {} end',
    "redis.call('HDEL', TOKEN, 'u')",
  ],
  'a token that is issued again changes hands': ['record', 'if f.e then', 'f.s = nil\nif false then'],
  'expiry does not count': ['claim', "if f.e and tonumber(f.e) <= now then return 'expired' end", ''],
  'anybody revokes': [
    'noteRevocation',
    'if f.s and f.s ~= ARGV[7] and',
    'ARGV[7] = f.s or ARGV[7]\nif false and',
  ],
  'the holder is a stranger': ['noteRevocation', 'and ARGV[7] ~= HOLDER', ''],
  'what its holder ended goes on': ['claim', 'by[HOLDER] or math.huge', 'math.huge'],
  'anybody is the holder': ['noteRevocation', 'if f.s and f.s', 'ARGV[7] = HOLDER\nif f.s and f.s'],
  'a pending revocation does not count': ['claim', "elseif kind == 'p:' then", "elseif kind == 'never' then"],
  'a refused revocation stands': ['settleRevocation', "if ARGV[9] == '1' then", 'if true then'],
  'a settled revocation is lost': [
    'settleRevocation',
    "redis.call('HSETNX', TOKEN, 'n:' .. ARGV[7], at)",
    '',
  ],
  'who revoked an unknown token is not named': ['claim', 'if not f.s then for who', 'if false then for who'],
  'mine is refused and stands': ['settleAll', "if ARGV[5] == '1' then", 'if true then'],
  'mine does not rise above the last': ['noteAll', 'math.max(generation() + 1, micros)', '1e15'],
  'mine is lost when it is settled': [
    'settleAll',
    "redis.call('HSET', SUBJECT, 'g', int(math.max(settled, tonumber(ARGV[4]))))",
    '',
  ],
  'mine rises each time that it is settled': ['settleAll', 'tonumber(ARGV[4])', 'note(ARGV[3])'],
  'a pending mine does not count': ['generation', 'for i = 2, #flat, 2 do', 'for i = 2, 0 do'],
  'purging takes the living too': ['purge', 'tonumber(f.e) > now then', 'false then'],
  'the index by expiry is not kept': ['record', "redis.call('ZADD', EXPIRY, f.e, DIGEST)", ''],
};

/** Names of the promises that do not hold. */
async function brokenPromises(open: () => Subject): Promise<string[]> {
  const broken = await Promise.all(
    Object.entries(contract).map(async ([promise, holds]) => {
      try {
        await holds(open());
        return undefined;
      } catch {
        return promise;
      }
    }),
  );
  return broken.filter((promise) => promise !== undefined);
}

describe('steps', () => {
  test('with the unbroken protocol every promise holds', async () => {
    expect(await brokenPromises(() => memorySubject())).toEqual([]);
  });

  test.each(Object.entries(brokenSteps))('%s', async (_, broken) => {
    expect(await brokenPromises(() => memorySubject({ ...steps, ...broken }))).not.toEqual([]);
  });
});

describe('scripts', () => {
  let server: SingleRedis;
  let connections: [Redis, Redis];
  beforeAll(async () => {
    server = await startRedis();
    connections = [await connect(server.url), await connect(server.url)];
  });
  afterAll(async () => {
    for (const each of connections) await each.close();
    await server.close();
  });

  test.each(Object.entries(brokenScripts))('%s', async (name, [operation, from, to]) => {
    const edit = (lua: string, each: string) => (each === operation ? lua.replace(from, to) : lua);
    const edited = new Set(Object.values(buildTokenScripts(edit)).map(({ sha1 }) => sha1));
    const changed = Object.entries(buildTokenScripts()).filter(([, { sha1 }]) => !edited.has(sha1));
    expect(changed.map(([each]) => each)).toEqual([operation]);
    // Records of its own for each promise: what one of them lets pass must not break another.
    let subjects = 0;
    const broken = await brokenPromises(() => {
      subjects += 1;
      return redisSubject(connections, { edit, keyPrefix: `broken ${name} ${subjects}` });
    });
    expect(broken).not.toEqual([]);
    // A script that only fails would break nearly all.
    expect(broken.length).toBeLessThan(Object.keys(contract).length / 2);
  });
});
