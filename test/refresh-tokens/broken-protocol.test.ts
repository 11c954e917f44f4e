import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Redis } from '../../src/redis/redis.ts';
import type { TokenSteps } from '../../src/refresh-tokens/memory-token-store.ts';
import * as steps from '../../src/refresh-tokens/token-record.ts';
import { buildTokenScripts } from '../../src/refresh-tokens/token-scripts.ts';
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
  'anybody releases a claim': { release: (record) => ({ ...record, claim: null }) },
  'nobody releases a claim': { release: (record) => record },
  'used is taken back by a release': { release: (record) => ({ ...record, claim: null, usedAtMs: null }) },
  'used counts only for the holder of a claim': {
    markUsed: (record, ...rest) => (record.claim === null ? record : steps.markUsed(record, ...rest)),
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
    noteRevocation: (record, _, op, now) =>
      steps.noteRevocation(record, record.subject ?? ('' as never), op, now),
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
  'anybody releases a claim': ['release', 'if f.c == ARGV[4] then', 'if f.c then'],
  'used is not written': ['markUsed', "if not f.u then set('u', int(now)) end", ''],
  'a token that is issued again becomes valid': [
    'record',
    'if f.u then return {} end',
    "redis.call('HDEL', TOKEN, 'u')",
  ],
  'a token that is issued again changes hands': ['record', 'if f.e then', 'f.s = nil\nif false then'],
  'expiry does not count': ['claim', "if f.e and tonumber(f.e) <= now then return 'expired' end", ''],
  'anybody revokes': ['noteRevocation', 'if f.s and f.s ~= ARGV[4]', 'ARGV[4] = f.s or ARGV[4]\nif false'],
  'a pending revocation does not count': ['claim', "elseif kind == 'p:' then", "elseif kind == 'never' then"],
  'a refused revocation stands': ['settleRevocation', "if ARGV[6] == '1' then", 'if true then'],
  'a settled revocation is lost': [
    'settleRevocation',
    "redis.call('HSETNX', TOKEN, 'n:' .. ARGV[4], at)",
    '',
  ],
  'who revoked an unknown token is not told': ['claim', 'if not f.s then for who', 'if false then for who'],
  'mine is refused and stands': ['settleAll', "if ARGV[4] == '1' then", 'if true then'],
  'mine does not rise above the last': ['noteAll', 'math.max(generation() + 1, micros)', '1e15'],
  'mine is lost when it is settled': [
    'settleAll',
    "redis.call('HSET', SUBJECT, 'g', int(math.max(settled, pending)))",
    '',
  ],
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
  test('unbroken, every promise holds', async () => {
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
