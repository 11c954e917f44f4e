import type { Method } from '../http/canonical-request.ts';
import type { RejectionName } from '../http/rejection.ts';
import { isolated, isolateLate } from '../lib/faults.ts';
import { copyText } from '../lib/text.ts';
import { type Log, withoutCredentials } from './log.ts';

/**
 * All that access log, metrics, traces and console learn about an exchange: no query, no token, and no field but
 * `User-Agent`, so that none of them can leak a secret.
 */
export interface ExchangeRecord {
  readonly requestId: string;
  readonly method: Method | 'other';
  /** Template of the deciding row, or of shopward's own endpoint; `*`: neither. Never the path itself. */
  readonly route: string;
  /** Canonical path without ids of tokens and over-long segments, at most 1,408 octets (`createRedactPath`). */
  readonly path: string;
  /** `answered`: by shopward itself; `failed`: the shop gave no usable answer; `aborted`: no whole response was sent. */
  readonly decision: 'forwarded' | 'answered' | 'refused' | 'failed' | 'aborted';
  /** 0: no response was sent. */
  readonly status: number;
  readonly rejection?: RejectionName | undefined;
  /** Detail of the rejection: a stable word, such as `expired` or `lease-busy`. */
  readonly reason?: string | undefined;
  /** The refusal that observe mode, of the row or of the proxy, did not enforce. */
  readonly observed?: RejectionName | undefined;
  /** Milliseconds from the request head to the end of the response, with one decimal. */
  readonly durationMs: number;
  /** The upstream's part of this time in milliseconds; undefined: the upstream was not asked. */
  readonly upstreamMs?: number | undefined;
  /** Octets of head and body: those that the connection has received since the previous exchange. */
  readonly bytesIn: number;
  /** Octets of the body of the response. */
  readonly bytesOut: number;
  /** The first 100 characters of `User-Agent`, without what looks like a token; undefined: there is none. */
  readonly userAgent?: string | undefined;
  readonly clientAddress: string;
  /** Code of the error that caused a fault, never its message. */
  readonly fault?: string | undefined;
}

/** Characters of `User-Agent` that are logged. */
const longestUserAgent = 100;
/** Sent `User-Agent` -> how it is logged: there are few, and each request has one. */
const loggedUserAgents = new Map<string, string>();
const mostUserAgents = 1_000;

export function redactUserAgent(sent: string | undefined): string | undefined {
  if (sent === undefined || sent.length > longestKept) return sent && cutUserAgent(sent);
  let logged = loggedUserAgents.get(sent);
  if (logged === undefined) {
    if (loggedUserAgents.size >= mostUserAgents) loggedUserAgents.clear();
    logged = cutUserAgent(sent);
    loggedUserAgents.set(copyText(sent), logged);
  }
  return logged;
}

/** Longer fields are rare, and would fill the memory. */
const longestKept = 512;

function cutUserAgent(sent: string): string {
  return copyText(withoutCredentials(sent.slice(0, 4 * longestKept)).slice(0, longestUserAgent));
}

/** A canonical path as it may be logged. */
export type RedactPath = (segments: readonly string[]) => string;

/** Longest path segment that is logged; tokens are longer, ids of a shop are not. */
const longestSegment = 80;
const cut = '/…';
const cutOctets = Buffer.byteLength(cut);
/**
 * Octets of the longest logged path. A line has the path twice and must fit into one write to a pipe (log-output.ts): workers
 * that share a pipe would interleave longer lines.
 */
const longestPath = 1408;

/**
 * A path as it may be logged: at most 1,408 octets, without segments that may be secret. These are over-long segments, and
 * all segments after one that contains one of `words` in any case, because a token's id follows (`/REFRESH-TOKENS;x//ID`).
 */
export function createRedactPath(words: readonly string[]): RedactPath {
  const lowered = words.map((word) => word.toLowerCase());
  const comesBeforeSecret = (segment: string) => {
    const text = segment.toLowerCase();
    return lowered.some((word) => text.includes(word));
  };
  return (segments) => {
    let path = '';
    let octets = 0;
    let isAfterWord = false;
    for (const segment of segments) {
      const hasWord = comesBeforeSecret(segment);
      // With an encoded slash the id is in the same segment as the word.
      const isSecret =
        (isAfterWord && segment !== '' && segment !== 'mine') || (hasWord && segment.includes('%2F'));
      const isCut = isSecret || segment.length > longestSegment;
      octets += isCut ? cutOctets : 1 + segment.length;
      if (octets > longestPath - cutOctets) return path + cut;
      path += isCut ? cut : `/${segment}`;
      isAfterWord ||= hasWord;
    }
    return path;
  };
}

/** The path segments that a token's id follows: Glue's own, and those of configured endpoints. */
export function tokenWords(templates: readonly string[]): string[] {
  const words = templates.flatMap((template) => /\/([^/{}]+)\/\{[^/]*\}$/.exec(template)?.[1] ?? []);
  return [...new Set(['refresh-tokens', ...words])];
}

/**
 * The access log. A refused request costs its sender little, so a flood of them must not fill the disk or keep the process
 * busy: the log has the first refusals of each second and the number of the rest, while metrics count all. Forwarded
 * requests are always logged: the shop's speed bounds them. Only tests set another number or window.
 */
export function createAccessLog(log: Log, maxRefusalLines = 200, windowMs = 1000) {
  /** Refusals of this second. */
  const counts = new Map<RejectionName, number>();
  const endSecond = isolated(() => {
    for (const [rejection, count] of counts) {
      const hidden = count - maxRefusalLines;
      if (hidden <= 0) continue;
      const text = `${hidden} more requests were refused for the same reason`;
      log.warn({ event: 'requests-not-logged', rejection, count: hidden }, text);
    }
    counts.clear();
  });
  const isFlooded = (rejection: RejectionName): boolean => {
    if (counts.size === 0) setTimeout(endSecond, windowMs).unref();
    const count = (counts.get(rejection) ?? 0) + 1;
    counts.set(rejection, count);
    return count > maxRefusalLines;
  };

  return (record: ExchangeRecord): void => {
    // A 5xx is a fault of shopward or the shop and worth a look; a 4xx concerns the client.
    const level = record.status >= 500 ? 'warn' : 'info';
    if (!log.isLevelEnabled(level)) return;
    if (record.decision !== 'aborted' && record.rejection && isFlooded(record.rejection)) return;
    log[level]({ event: 'request', ...record }, `${record.method} ${record.path} ${record.status}`);
  };
}

/** How long a record waits for others. */
const batchMs = 100;
/** This many records are sent at once: objects that wait for long reach V8's old space, whose collection is expensive. */
const fullBatch = 128;
/** Maximum number of waiting records; further ones are dropped, since a path may keep its whole request line in memory. */
const mostRecords = 5_000;

/** Collects a worker's records of ended exchanges, and sends them in batches for the console of the primary. */
export function createExchangeBatch(send: (records: readonly ExchangeRecord[]) => Promise<void> | void) {
  let waiting: ExchangeRecord[] = [];
  let isSending = false;
  let timer: NodeJS.Timeout | undefined;
  const sendIfDue = (): void => {
    if (isSending || waiting.length === 0) return;
    if (waiting.length >= fullBatch) isolateLate(flush());
    else timer ??= setTimeout(() => isolateLate(flush()), batchMs).unref();
  };
  const flush = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    isSending = true;
    const records = waiting;
    waiting = [];
    try {
      await send(records);
    } finally {
      isSending = false;
      sendIfDue();
    }
  };
  return (record: ExchangeRecord): void => {
    if (waiting.length < mostRecords) waiting.push(record);
    sendIfDue();
  };
}
