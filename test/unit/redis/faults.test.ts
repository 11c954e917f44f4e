import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  causeOf,
  cureOf,
  isMoved,
  isNotPrimary,
  isUnknownScript,
  lateSince,
  mayTakeEffectAfter,
  type RedisFaultWord,
  RedisUnavailable,
  toRedisFault,
  wasNotRun,
  withinDeadline,
} from '../../../src/redis/faults.ts';

/** An error reply as ioredis throws it. */
function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

/** The reply of Redis, the word for it, and whether the client must reconnect. */
const replies: readonly (readonly [string, string, boolean])[] = [
  ["READONLY You can't write against a read only replica.", 'readonly', true],
  ['UNBLOCKED force unblock from blocking operation, instance state changed', 'readonly', true],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'masterdown', true],
  ['LOADING Redis is loading the dataset in memory', 'loading', false],
  ['CLUSTERDOWN The cluster is down', 'clusterdown', false],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'tryagain', false],
  ['MOVED 3999 127.0.0.1:6381', 'clusterdown', false],
  ['ASK 3999 127.0.0.1:6381', 'clusterdown', false],
  ['BUSY Redis is busy running a script.', 'busy', false],
  ["OOM command not allowed when used memory > 'maxmemory'.", 'oom', false],
  ['MISCONF Redis is configured to save RDB snapshots', 'misconf', false],
  ['NOREPLICAS Not enough good replicas to write.', 'noreplicas', false],
  ['NOAUTH Authentication required.', 'noauth', false],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'wrongpass', false],
  ["NOPERM this user has no permissions to run the 'eval' command", 'noperm', false],
  ['LATE 1700000000000000', 'timeout', false],
  ['ERR script: 1f, on @user_script:1: -MASTERDOWN Link with MASTER is down', 'masterdown', true],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'error', false],
];

test.each(replies)('%s', (message, word, isAnew) => {
  expect([toRedisFault(reply(message)).word, isNotPrimary(reply(message))]).toEqual([word, isAnew]);
});

test.each<[string, boolean, boolean, number | undefined]>([
  ['NOSCRIPT No matching script.', true, false, undefined],
  ['MOVED 3999 127.0.0.1:6381', false, true, undefined],
  ['LATE 1700000000000000', false, false, 1_700_000_000_000_000],
  ['OOM command not allowed', false, false, undefined],
  ['MOVEDX 1', false, false, undefined],
])('%s: no script %s, another node %s, late since %s', (message, isNoScript, isElsewhere, since) => {
  const error = reply(message);
  expect([isUnknownScript(error), isMoved(error), lateSince(error)]).toEqual([
    isNoScript,
    isElsewhere,
    since,
  ]);
  // With these replies a claim was not executed.
  expect(wasNotRun(error)).toBe(isNoScript || isElsewhere || since !== undefined);
  for (const is of [isUnknownScript, isMoved, wasNotRun]) expect(is(message)).toBe(false);
});

const noperm = 'NOPERM: grant +@read +@write +@connection +@scripting +info +time +wait';
const failed = (message: string, fields: object = {}) => Object.assign(new Error(message), fields);
const coded = (code: string, fields: object = {}) => failed('x', { code, ...fields });
const address = { address: '10.0.0.5', port: 6379 };
const named = (length: number) => reply(`NOPERM not '${'x'.repeat(length)}' at all`);
const inScript = (what: string) => reply(`ERR The user executing the script can't ${what}`);
const unreachable = 'All sentinels are unreachable. Last error: connect ECONNREFUSED 127.0.0.1:1 and more';
const ofNode = { lastNodeError: reply('NOAUTH Authentication required.') };

test.each<[string, unknown, string, string | undefined]>([
  ['a bad certificate', coded('CERT_HAS_EXPIRED'), 'connection', 'certificate: CERT_HAS_EXPIRED'],
  ['an address', coded('ECONNREFUSED', address), 'connection', 'ECONNREFUSED 10.0.0.5:6379'],
  [
    'a host name',
    coded('ENOTFOUND', { hostname: 'r.example', ...address }),
    'connection',
    'ENOTFOUND r.example',
  ],
  ['neither address nor name', coded('ECONNRESET'), 'connection', 'ECONNRESET'],
  ['a node of a cluster', failed('Failed to refresh slots cache.', ofNode), 'connection', 'NOAUTH'],
  ['an error inside a message of ioredis', failed(unreachable), 'connection', 'ECONNREFUSED 127.0.0.1:1'],
  ['a reply of the server without ReplyError', failed('NOAUTH Authentication required.'), 'noauth', 'NOAUTH'],
  ['a command that times out', failed('Command timed out'), 'timeout', undefined],
  ['a silent connection', failed('Socket timeout. Expecting data.'), 'timeout', undefined],
  ['a missing right', reply("NOPERM no right to 'eval' here"), 'noperm', 'NOPERM eval: grant +eval'],
  ['a missing right without its name', reply('NOPERM this user may not'), 'noperm', noperm],
  ['a right of 41 characters', named(41), 'noperm', noperm],
  ['a right of 40 characters', named(40), 'noperm', 'NOPERM X: grant +X'.replaceAll('X', 'x'.repeat(40))],
  ['a forbidden key', reply('NOPERM No permissions to access a key'), 'noperm', 'NOPERM: grant ~PREFIX:*'],
  ['a right without its closing quote', reply("NOPERM not 'eval"), 'noperm', noperm],
  ['an unknown command', reply("ERR unknown command 'WAITAOF'"), 'error', 'unknown command WAITAOF'],
  ['a command named first', reply("'WAITAOF' is an unknown command"), 'error', 'unknown command WAITAOF'],
  ['a quoted word in another error', reply("OOM 'secret' does not fit"), 'oom', 'OOM'],
  ['a missing right in a script', inScript('run this command'), 'noperm', noperm],
  [
    'a forbidden key in a script',
    inScript('access at least one of the keys'),
    'noperm',
    'NOPERM: grant ~PREFIX:*',
  ],
  ['an unknown message', reply('ERR a secret argument'), 'error', undefined],
  ['no error at all', 'text', 'error', undefined],
  ['RedisUnavailable with a cause', new RedisUnavailable('oom', reply('OOM no room')), 'oom', 'OOM'],
  ['RedisUnavailable', new RedisUnavailable('closed'), 'closed', undefined],
])('causeOf %s: its word and a text without arguments of commands', (_, error, word, text) => {
  expect(causeOf(error)).toEqual({ word, text });
});

test.each<[RedisFaultWord, string | undefined, string | undefined]>([
  ['connection', undefined, undefined],
  ['connection', 'ECONNREFUSED 10.0.0.5:6379', 'check host and port of store.url'],
  ['connection', 'EMFILE 10.0.0.5:6379', 'raise the limit of open files (ulimit -n, LimitNOFILE)'],
  ['connection', 'certificate: CERT_HAS_EXPIRED', 'renew the certificate of Redis'],
  ['timeout', undefined, 'no reply within store.timeout'],
  ['oom', 'OOM', 'raise its maxmemory'],
  ['misconf', 'MISCONF', undefined],
  ['evicting', 'maxmemory-policy allkeys-lru', 'set noeviction'],
])('cureOf %s %s is %s', (word, text, cure) => {
  expect(cureOf({ word, text })).toBe(cure);
});

describe('a call within a deadline', () => {
  afterEach(() => void vi.useRealTimers());
  const never = new Promise<string>(() => {});

  test('ends as without a deadline, and leaves no timer', async () => {
    vi.useFakeTimers();
    expect(await withinDeadline(async () => 'OK', 100)).toBe('OK');
    await expect(withinDeadline(() => Promise.reject(reply('OOM no room')), 100)).rejects.toMatchObject({
      ...{ name: 'RedisUnavailable', word: 'oom' },
    });
    const bug = () => {
      throw reply('READONLY a replica');
    };
    await expect(withinDeadline(bug, 100)).rejects.toMatchObject({ word: 'readonly' });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('rejects with timeout at the deadline, not a millisecond earlier', async () => {
    vi.useFakeTimers();
    let outcome: unknown;
    withinDeadline(() => never, 100).catch((fault: unknown) => {
      outcome = fault;
    });
    await vi.advanceTimersByTimeAsync(99);
    expect(outcome).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(outcome).toMatchObject({ name: 'RedisUnavailable', word: 'timeout' });
  });

  test('mayTakeEffectAfter is false for a claim that was not sent, and waits for one that may take effect', async () => {
    expect(await mayTakeEffectAfter(new Error('a bug'))).toBe(true);
    expect(await mayTakeEffectAfter(new RedisUnavailable('connection'))).toBe(false);
    expect(await mayTakeEffectAfter(new RedisUnavailable('timeout', undefined, 0))).toBe(true);
    const untilMs = performance.now() + 20;
    expect(await mayTakeEffectAfter(new RedisUnavailable('timeout', undefined, untilMs))).toBe(true);
    expect(performance.now()).toBeGreaterThan(untilMs);
  });
});
