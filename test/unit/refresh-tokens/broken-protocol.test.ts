import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import * as steps from '../../../src/refresh-tokens/protocol.ts';
import { buildTokenScripts } from '../../../src/refresh-tokens/redis-store.ts';
import type { TokenSteps } from '../../../src/refresh-tokens/token-store.ts';
import { holder } from '../../../src/refresh-tokens/token-values.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { anybodyReleases, claimFrom, keptIsUsed, recordFrom } from './broken-steps.ts';
import { contract, type Subject } from './store-contract.ts';
import { connect, memorySubject, redisSubject } from './stores.ts';

/** Each breaks one rule of docs/decisions/refresh-token-states.md; a contract that holds all the same proves nothing. */
const brokenSteps: Readonly<Record<string, Partial<TokenSteps>>> = {
  'a claim does not keep others out': claimFrom(() => ({ claim: null })),
  'an unknown outcome keeps the whole claim': {
    markIndeterminate: (record, op, _, now) => steps.markIndeterminate(record, op, 1e12, now),
  },
  'a client that waits is forgotten': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'in-exchange' ? { ...step, record } : step;
    },
  },
  'a client may wait for ever': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'used' ? { ...step, answer: { ...step.answer, isAwaited: true } } : step;
    },
  },
  'a Retry-After may be longer than the leeway': {
    claim: (record, op, holdMs, now) => steps.claim(record, op, holdMs, now, 60_000),
  },
  'a claim never lapses': {
    claim: (record, op, _, now) => steps.claim(record, op, 1e12, now),
  },
  'an unknown outcome reads as a refresh under way': { markIndeterminate: (record) => record },
  'anybody says that the outcome is unknown': {
    markIndeterminate: (record, _, ...rest) =>
      steps.markIndeterminate(record, record.claim?.op ?? '', ...rest),
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
  'a token that is issued again is used up': keptIsUsed,
  'a token that is issued again is free before its refresh has ended': {
    recordIssued: (record, issued, now) => ({ ...steps.recordIssued(record, issued, now), claim: null }),
  },
  'a leeway begins again with every look': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'used' ? { ...step, answer: { ...step.answer, usedForMs: 0 } } : step;
    },
  },
  'a used token loses its family': claimFrom(() => ({ family: null })),
  'anybody releases a claim': anybodyReleases,
  'nobody releases a claim': { release: (record) => record },
  'a note needs no room': {
    noteRevocation: (record, by, op, _, now) => steps.noteRevocation(record, by, op, true, now),
  },
  'each note about one token needs room': {
    noteRevocation: (record, by, op, isAdmitted, now) =>
      isAdmitted ? steps.noteRevocation(record, by, op, true, now) : { record, answer: 'full' },
  },
  'a token that is issued again loses its revocation': recordFrom(() => ({ notes: [] })),
  'anybody revokes': {
    noteRevocation: (record, _, ...rest) =>
      steps.noteRevocation(record, record.subject ?? ('' as never), ...rest),
  },
  'the holder is another user': {
    noteRevocation: (record, by, ...rest) =>
      by === holder && record.subject !== null
        ? { record, answer: 'foreign' }
        : steps.noteRevocation(record, by, ...rest),
  },
  "the holder's note does not count": {
    claim: (record, ...rest) =>
      steps.claim({ ...record, notes: record.notes.filter(({ by }) => by !== holder) }, ...rest),
  },
  "every note counts as its holder's": {
    noteRevocation: (record, _, ...rest) => steps.noteRevocation(record, holder, ...rest),
  },
  'a pending revocation does not count': {
    claim: (record, ...rest) =>
      steps.claim({ ...record, notes: record.notes.filter(({ op }) => op === null) }, ...rest),
  },
  'a refused revocation stands': {
    settleRevocation: (record, by, op, _, now) => steps.settleRevocation(record, by, op, true, now),
  },
  'a refused revocation takes another one back': {
    settleRevocation: (record, by, op, stands, now) => {
      const settled = steps.settleRevocation(record, by, op, stands, now);
      return stands ? settled : { ...settled, notes: [] };
    },
  },
  'a revocation is not settled without its note': {
    settleRevocation: (record, by, op, stands, now) =>
      record.notes.some((note) => note.op === op)
        ? steps.settleRevocation(record, by, op, stands, now)
        : record,
  },
  'a note on an unknown token counts whoever made it': {
    claim: (record, ...rest) => {
      const answer = steps.claim(record, ...rest);
      return record.notes.length > 0 ? { ...answer, answer: { kind: 'revoked' } } : answer;
    },
  },
  'a refused `mine` stands': {
    settleAll: (record, op, noted, _, untilMs) => steps.settleAll(record, op, noted, true, untilMs),
  },
  'a `mine` does not rise above the last': {
    noteAll: (_, ...rest) => steps.noteAll(steps.blankSubject, ...rest),
  },
  'a `mine` is lost when it is settled': {
    settleAll: (record, op, noted, _, untilMs) => steps.settleAll(record, op, noted, false, untilMs),
  },
  'a pending `mine` does not count': { generationIn: ({ settled }) => settled },
  'used is taken back by a release': { release: (record) => ({ ...record, claim: null, usedAtMs: null }) },
  'a token that is issued again becomes valid': recordFrom(() => ({ usedAtMs: null })),
  'a token that is issued again changes hands': recordFrom(() => ({ life: null, subject: null })),
  'expiry does not count': claimFrom(() => ({ life: null })),
};

/** What of a script is replaced by what. */
const brokenScripts: Readonly<Record<string, readonly ['read' | 'replace', string, string]>> = {
  'a record is replaced although another has changed it': [
    'replace',
    'if seen ~= ARGV[1] then',
    'if false then',
  ],
  'a record is not written': ['replace', "redis.call('SET', KEYS[1], ARGV[2])", "redis.call('GET', KEYS[1])"],
  'a record is not deleted': ['replace', "redis.call('DEL', KEYS[1])", "redis.call('GET', KEYS[1])"],
  'a known token is not listed': [
    'replace',
    "redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])",
    "redis.call('GET', KEYS[1])",
  ],
  'every record is read as absent': ['read', "texts[i] or ''", "''"],
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
  });
});
