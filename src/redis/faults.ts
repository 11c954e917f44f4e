import { setTimeout as sleep } from 'node:timers/promises';

/** Why Redis could not be used. Stable words, for logs and metrics. */
export type RedisFaultWord =
  | 'connection' // refused, reset, not connected
  | 'timeout' // no reply within the deadline
  | 'readonly' // a replica, after a failover
  | 'loading'
  | 'masterdown'
  | 'clusterdown'
  | 'tryagain'
  | 'busy' // a script or function runs too long
  | 'oom' // maxmemory reached
  | 'misconf' // cannot save to disk
  | 'noreplicas'
  | 'noauth'
  | 'wrongpass'
  | 'noperm'
  | 'evicting' // maxmemory-policy would evict records
  | 'settings' // another replica has other settings, or it is another shop's data
  | 'closed'
  | 'error'; // any other error reply

/** The only error that calls to Redis reject with. Its message has the word, and never a key, an argument or a password. */
export class RedisUnavailable extends Error {
  override readonly name = 'RedisUnavailable';
  readonly word: RedisFaultWord;
  /**
   * For a claim that was sent and got no reply: the moment (`performance.now`, milliseconds) until which it may still take
   * effect, and after which it is to be released. Undefined: it took no effect and never will.
   */
  readonly mayTakeEffectUntilMs: number | undefined;

  constructor(word: RedisFaultWord, cause?: unknown, mayTakeEffectUntilMs?: number) {
    super(`Redis is not available: ${word}`, cause === undefined ? undefined : { cause });
    this.word = word;
    this.mayTakeEffectUntilMs = mayTakeEffectUntilMs;
  }
}

/** Why a call failed. */
export interface Cause {
  readonly word: RedisFaultWord;
  /** Its name in Redis or the system: `NOAUTH`, `ECONNREFUSED 10.0.0.5:6379`; undefined: it has none. */
  readonly text: string | undefined;
}

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

/** Converts an error of a client to `RedisUnavailable`. */
export function toRedisFault(error: unknown): RedisUnavailable {
  if (error instanceof RedisUnavailable) return error;
  return new RedisUnavailable(faultWord(error), error);
}

/** The cause of a fault for people, in the words of Redis or the system; never a key, an argument or a password. */
export function causeOf(error: unknown): Cause {
  const fault = toRedisFault(error);
  return { word: fault.word, text: ownWord(fault.cause ?? error) };
}

/** Error words of Redis that are looked for anywhere in a message: ioredis and scripts wrap them. */
const replyWord =
  /\b(NOAUTH|WRONGPASS|NOPERM|OOM|MISCONF|CLUSTERDOWN|MASTERDOWN|READONLY|LOADING|NOREPLICAS|TRYAGAIN|BUSY)\b/;
const certificateCode =
  /^(?:CERT_|ERR_TLS_CERT|ERR_SSL_\w+_ALERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/;

/** Error text of Redis or the system -> the setting to change. */
const cures: readonly (readonly [said: RegExp, cure: string])[] = [
  [/^NOAUTH/, 'store.url has no password'],
  [/^WRONGPASS/, 'store.url has another user or password than Redis'],
  [/^certificate: .*ALERT/, 'Redis refuses store.tls.cert'],
  [/^certificate: .*(?:ALTNAME|HOSTNAME)/, 'it is not for the host of store.url'],
  [/^certificate: CERT_(?!UNTRUSTED)/, 'renew the certificate of Redis'],
  [/^certificate: /, 'store.tls.ca does not have its authority'],
  [/^timeout/, 'no reply within store.timeout'],
  [/^E[MN]FILE/, 'raise the limit of open files (ulimit -n, LimitNOFILE)'],
  [/^OOM/, 'raise its maxmemory'],
  [/^maxmemory-policy/, 'set noeviction'],
  [/^E(?!XEC)[A-Z]+ /, 'check host and port of store.url'],
];

/** The setting that removes the cause. Undefined: no setting does. */
export function cureOf({ word, text = word }: Cause): string | undefined {
  return cures.find(([said]) => said.test(text))?.[1];
}

function ownWord(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, hostname, address, port, lastNodeError } = error as ErrorFields;
  if (lastNodeError !== undefined) return ownWord(lastNodeError);
  if (code !== undefined && certificateCode.test(code)) return `certificate: ${code}`;
  if (code !== undefined && /^E[A-Z]{3,}$/.test(code)) {
    const where = hostname ?? (address === undefined ? undefined : `${address}:${port}`);
    return where === undefined ? code : `${code} ${where}`;
  }
  const { message } = error;
  const reply = replyWord.exec(message)?.[1];
  const isUnknown = message.includes('unknown command');
  if (reply === 'NOPERM' || message.includes(refusedInScript)) return refusedText(message);
  if (isUnknown) return `unknown command ${quotedIn(message) ?? ''}`.trimEnd();
  if (reply !== undefined) return reply;
  // The system's error in a message of ioredis: "All sentinels are unreachable … Last error: connect ECONNREFUSED".
  return /\bE[A-Z]{5,20}\b(?: [\w.:-]{1,80})?/.exec(message)?.[0];
}

/** Message of Redis if its user may not run a command of a script; it does not name the command. */
const refusedInScript = "The user executing the script can't";

/** What Redis refused, and what to grant to its user. */
function refusedText(message: string): string {
  const command = quotedIn(message.replace(refusedInScript, ''));
  if (command !== undefined) return `NOPERM ${command}: grant +${command}`;
  if (message.includes(' key')) return 'NOPERM: grant ~PREFIX:*';
  return 'NOPERM: grant +@read +@write +@connection +@scripting +info +time +wait';
}

/** The first short text in quotes: in messages of Redis it is a command. */
function quotedIn(message: string): string | undefined {
  return /^[^']*'([^']{0,40})'/.exec(message)?.[1];
}

interface ErrorFields {
  readonly code?: string;
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
  readonly lastNodeError?: unknown;
}

function faultWord(error: unknown): RedisFaultWord {
  if (!(error instanceof Error)) return 'error';
  if (error.name !== 'ReplyError') {
    if (/timed out|Socket timeout/.test(error.message)) return 'timeout';
    // ioredis wraps an error reply that it got while connecting.
    return words[replyWord.exec(error.message)?.[1] ?? ''] ?? 'connection';
  }
  const first = errorWord(error);
  const known = words[first];
  if (known !== undefined) return known;
  // A script wraps the reply of a command that it called: "… script: <sha>, on @user_script:1: -OOM command …".
  const inner = words[replyWord.exec(error.message)?.[1] ?? ''];
  if (inner !== undefined) return inner;
  if (error.message.includes('read only')) return 'readonly';
  return error.message.includes(refusedInScript) ? 'noperm' : 'error';
}

/** Whether the node does not know the script (yet, or after SCRIPT FLUSH or a failover). */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && errorWord(error) === 'NOSCRIPT';
}

/** Whether another node of the Cluster has the slot: the command was not executed. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && errorWord(error) === 'MOVED';
}

/** The server's time in microseconds, if a claim was refused as late (`defineClaim`); else undefined. */
export function lateSince(error: unknown): number | undefined {
  return error instanceof Error && errorWord(error) === 'LATE' ? Number(error.message.slice(5)) : undefined;
}

/** Whether the error says that the claim was not executed. */
export function wasNotRun(error: unknown): boolean {
  return isUnknownScript(error) || isMoved(error) || lateSince(error) !== undefined;
}

/** Whether the server is not the primary any more, so that ioredis has to reconnect (`reconnectOnError`). */
export function isNotPrimary(error: Error): boolean {
  const word = faultWord(error);
  return word === 'readonly' || word === 'masterdown';
}

function errorWord(error: Error): string {
  const space = error.message.indexOf(' ');
  return space === -1 ? error.message : error.message.slice(0, space);
}

/**
 * Ends as `call` does, or after `timeoutMs` with `RedisUnavailable('timeout')`: ioredis 6.0.0 may leave a promise
 * unsettled for ever when a connection breaks and re-sending is off (https://github.com/redis/ioredis/issues/2193).
 */
export function withinDeadline<T>(call: () => Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(rejectAsLate, timeoutMs, reject);
    const fail = (error: unknown) => {
      clearTimeout(timer);
      reject(toRedisFault(error));
    };
    try {
      call().then((reply) => {
        clearTimeout(timer);
        resolve(reply);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}

/**
 * Waits until a claim that failed with `fault` can no longer take effect. It may be released only then, or the release could
 * overtake it. Resolves to `false` if it took no effect and never will. After any other error it resolves to `true` at once.
 */
export async function mayTakeEffectAfter(fault: unknown): Promise<boolean> {
  if (!(fault instanceof RedisUnavailable)) return true;
  const { mayTakeEffectUntilMs } = fault;
  if (mayTakeEffectUntilMs === undefined) return false;
  // Timers count whole milliseconds from the start of the tick, so wait one more.
  await sleep(Math.max(0, Math.ceil(mayTakeEffectUntilMs - performance.now()) + 1));
  return true;
}

/** Creates the error only when it is needed: an error and its stack cost as much as the rest of a call. */
function rejectAsLate(reject: (fault: RedisUnavailable) => void): void {
  reject(new RedisUnavailable('timeout'));
}
