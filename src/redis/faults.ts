import { type RedisFaultWord, RedisUnavailable } from './redis.ts';

/** First word of an error reply -> our word (https://redis.io/docs/latest/develop/reference/protocol-spec/). */
const words: Readonly<Record<string, RedisFaultWord>> = {
  READONLY: 'readonly',
  LOADING: 'loading',
  MASTERDOWN: 'masterdown',
  CLUSTERDOWN: 'clusterdown',
  TRYAGAIN: 'tryagain',
  MOVED: 'clusterdown',
  ASK: 'clusterdown',
  BUSY: 'busy',
  UNBLOCKED: 'readonly',
  OOM: 'oom',
  MISCONF: 'misconf',
  NOREPLICAS: 'noreplicas',
  NOAUTH: 'noauth',
  WRONGPASS: 'wrongpass',
  NOPERM: 'noperm',
  LATE: 'timeout',
};

/** Whatever a client threw, as our one fault. */
export function toRedisFault(error: unknown): RedisUnavailable {
  if (error instanceof RedisUnavailable) return error;
  return new RedisUnavailable(faultWord(error), error);
}

function faultWord(error: unknown): RedisFaultWord {
  if (!(error instanceof Error)) return 'error';
  if (error.name !== 'ReplyError') return isTimeout(error) ? 'timeout' : 'connection';
  const first = errorWord(error);
  const known = words[first];
  if (known !== undefined) return known;
  // A script wraps the reply of a command that it called: "… script: <sha>, on @user_script:1: -OOM command …".
  const inner = /\b(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM|MASTERDOWN|LOADING)\b/.exec(error.message)?.[1];
  return (
    (inner !== undefined && words[inner]) || (error.message.includes('read only') ? 'readonly' : 'error')
  );
}

function isTimeout(error: Error): boolean {
  return error.message.includes('timed out') || error.message.includes('Socket timeout');
}

/** Whether the node does not know the script (yet, or after SCRIPT FLUSH or a failover). */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && errorWord(error) === 'NOSCRIPT';
}

/** Whether another node of the Cluster has the slot: the command was not executed. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && errorWord(error) === 'MOVED';
}

/** The server's time in microseconds, where a claim was late and changed nothing (`defineClaim`). */
export function lateSince(error: unknown): number | undefined {
  return error instanceof Error && errorWord(error) === 'LATE' ? Number(error.message.slice(5)) : undefined;
}

/** Whether the reply says that nothing of a claim was executed. */
export function wasNotRun(error: unknown): boolean {
  return isUnknownScript(error) || isMoved(error) || lateSince(error) !== undefined;
}

/** Whether the server is not the primary any more: the connection has to be made anew (ioredis `reconnectOnError`). */
export function isNotPrimary(error: Error): boolean {
  const word = faultWord(error);
  return word === 'readonly' || word === 'masterdown';
}

function errorWord(error: Error): string {
  const space = error.message.indexOf(' ');
  return space === -1 ? error.message : error.message.slice(0, space);
}
