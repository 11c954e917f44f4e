import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import * as steps from '../../../src/refresh-tokens/protocol.ts';
import { buildTokenScripts } from '../../../src/refresh-tokens/redis-store.ts';
import type { TokenSteps } from '../../../src/refresh-tokens/token-store.ts';
import { bearer } from '../../../src/refresh-tokens/token-values.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import { anybodyReleases, claimFrom, keptIsUsed, recordFrom } from './broken-steps.ts';
import { contract, type Subject } from './store-contract.ts';
import { connect, memorySubject, redisSubject } from './stores.ts';

/** Each entry breaks one rule of docs/decisions/refresh-token-states.md. The contract must then fail. */
const brokenSteps: Readonly<Record<string, Partial<TokenSteps>>> = {
  'a claim does not exclude others': claimFrom(() => ({ claim: null })),
  'after an unknown outcome the claim does not end earlier': {
    markIndeterminate: (record, op, _, now) => steps.markIndeterminate(record, op, 1e12, now),
  },
  'a waiting client is not recorded': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'in-exchange' ? { ...step, record } : step;
    },
  },
  'a waiting client is expected for ever': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'used' ? { ...step, answer: { ...step.answer, isAwaited: true } } : step;
    },
  },
  'a Retry-After may be longer than the leeway': {
    claim: (record, op, claimMs, now) => steps.claim(record, op, claimMs, now, 60_000),
  },
  'a claim never lapses': { claim: (record, op, _, now) => steps.claim(record, op, 1e12, now) },
  'an unknown outcome reads as a refresh under way': { markIndeterminate: (record) => record },
  'another operation marks the outcome as unknown': {
    markIndeterminate: (record, _, ...rest) =>
      steps.markIndeterminate(record, record.claim?.op ?? '', ...rest),
  },
  'the mark of an unknown outcome stays for the next claim': {
    claim: (record, ...rest) => {
      const { record: next, answer } = steps.claim(record, ...rest);
      const isIndeterminate = record.claim?.isIndeterminate === true;
      return {
        answer,
        record: next.claim === null ? next : { ...next, claim: { ...next.claim, isIndeterminate } },
      };
    },
  },
  'a refresh changes the family of its token': {
    markUsed: (record, ...rest) => steps.markUsed({ ...record, family: null }, ...rest),
  },
  'a token that is issued again gets another family': {
    recordIssued: (record, issued, now) => ({
      ...steps.recordIssued(record, issued, now),
      family: issued.family,
    }),
  },
  'a token that is issued again counts as used': keptIsUsed,
  'a token that is issued again loses its claim': {
    recordIssued: (record, issued, now) => ({ ...steps.recordIssued(record, issued, now), claim: null }),
  },
  'the leeway starts again with each claim': {
    claim: (record, ...rest) => {
      const step = steps.claim(record, ...rest);
      return step.answer.kind === 'used' ? { ...step, answer: { ...step.answer, usedForMs: 0 } } : step;
    },
  },
  'a used token loses its family': claimFrom(() => ({ family: null })),
  'any operation releases a claim': anybodyReleases,
  'no operation releases a claim': { release: (record) => record },
  'notes have no limit': {
    noteRevocation: (record, by, op, _, now) => steps.noteRevocation(record, by, op, true, now),
  },
  'each note about the same token counts towards the limit': {
    noteRevocation: (record, by, op, isAdmitted, now) =>
      isAdmitted ? steps.noteRevocation(record, by, op, true, now) : { record, answer: 'full' },
  },
  'a token that is issued again loses its revocation': recordFrom(() => ({ notes: [] })),
  'any user revokes': {
    noteRevocation: (record, _, ...rest) =>
      steps.noteRevocation(record, record.subject ?? ('' as never), ...rest),
  },
  'a client that shows the token counts as another user': {
    noteRevocation: (record, by, ...rest) =>
      by === bearer && record.subject !== null
        ? { record, answer: 'foreign' }
        : steps.noteRevocation(record, by, ...rest),
  },
  'the note of a client that shows the token does not count': {
    claim: (record, ...rest) =>
      steps.claim({ ...record, notes: record.notes.filter(({ by }) => by !== bearer) }, ...rest),
  },
  'every note counts as that of a client that shows the token': {
    noteRevocation: (record, _, ...rest) => steps.noteRevocation(record, bearer, ...rest),
  },
  'a pending revocation does not count': {
    claim: (record, ...rest) =>
      steps.claim({ ...record, notes: record.notes.filter(({ op }) => op === null) }, ...rest),
  },
  'a refused revocation stays in force': {
    concludeRevocation: (record, by, op, _, now) => steps.concludeRevocation(record, by, op, true, now),
  },
  'a refused revocation removes another one': {
    concludeRevocation: (record, by, op, stands, now) => {
      const settled = steps.concludeRevocation(record, by, op, stands, now);
      return stands ? settled : { ...settled, notes: [] };
    },
  },
  'a confirmed revocation needs its note': {
    concludeRevocation: (record, by, op, stands, now) =>
      record.notes.some((note) => note.op === op)
        ? steps.concludeRevocation(record, by, op, stands, now)
        : record,
  },
  'a note on an unknown token counts for every user': {
    claim: (record, ...rest) => {
      const answer = steps.claim(record, ...rest);
      return record.notes.length > 0 ? { ...answer, answer: { kind: 'revoked' } } : answer;
    },
  },
  'a refused `mine` stays in force': {
    concludeAll: (record, op, noted, _, untilMs) => steps.concludeAll(record, op, noted, true, untilMs),
  },
  'a second `mine` does not raise the generation': {
    noteAll: (_, ...rest) => steps.noteAll(steps.blankSubject, ...rest),
  },
  'a confirmed `mine` is lost': {
    concludeAll: (record, op, noted, _, untilMs) => steps.concludeAll(record, op, noted, false, untilMs),
  },
  'a pending `mine` does not count': { generationIn: ({ settled }) => settled },
  'a release removes the used mark': { release: (record) => ({ ...record, claim: null, usedAtMs: null }) },
  'a used token that is issued again becomes valid': recordFrom(() => ({ usedAtMs: null })),
  'a token that is issued again gets another user': recordFrom(() => ({ life: null, subject: null })),
  'expiry does not count': claimFrom(() => ({ life: null })),
};

/** The script, the text to replace, and the replacement. */
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

/** The names of the promises that fail. */
async function brokenPromises(open: () => Subject): Promise<string[]> {
  const broken = await Promise.all(
    Object.entries(contract).map(async ([promise, check]) => {
      try {
        await check(open());
        return undefined;
      } catch {
        return promise;
      }
    }),
  );
  return broken.filter((promise) => promise !== undefined);
}

describe('steps', () => {
  test('no promise fails with the intact protocol', async () => {
    expect(await brokenPromises(() => memorySubject())).toEqual([]);
  });

  test.each(Object.entries(brokenSteps))('fail the contract if %s', async (_, broken) => {
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

  test.each(Object.entries(brokenScripts))('fail the contract if %s', async (name, [operation, from, to]) => {
    const edit = (lua: string, each: string) => (each === operation ? lua.replace(from, to) : lua);
    const edited = new Set(Object.values(buildTokenScripts(edit)).map(({ sha1 }) => sha1));
    const changed = Object.entries(buildTokenScripts()).filter(([, { sha1 }]) => !edited.has(sha1));
    expect(changed.map(([each]) => each)).toEqual([operation]);
    // New records for each promise, so that one failure causes no other.
    let subjects = 0;
    const broken = await brokenPromises(() => {
      subjects += 1;
      return redisSubject(connections, { edit, keyPrefix: `broken ${name} ${subjects}` });
    });
    expect(broken).not.toEqual([]);
  });
});
