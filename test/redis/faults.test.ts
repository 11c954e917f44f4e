import { expect, test } from 'vitest';
import {
  isMoved,
  isNotPrimary,
  isUnknownScript,
  lateSince,
  toRedisFault,
  wasNotRun,
} from '../../src/redis/faults.ts';

/** An error reply as ioredis throws it. */
function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

/** What Redis says, the word that it gets, and whether the connection has to be made anew. */
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
  // Then nothing of a claim was executed.
  expect(wasNotRun(error)).toBe(isNoScript || isElsewhere || since !== undefined);
  for (const is of [isUnknownScript, isMoved, wasNotRun]) expect(is(message)).toBe(false);
});
