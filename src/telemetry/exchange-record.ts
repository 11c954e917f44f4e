import type { Method } from '../http/canonical-request.ts';
import type { RejectionName } from '../http/rejection.ts';
import type { Log } from './log.ts';

/**
 * What is kept of one exchange, for access log, metrics and console. It has no query, no field value and no token by
 * construction: what is not in it cannot leak from it.
 */
export interface ExchangeRecord {
  readonly requestId: string;
  readonly method: Method | 'other';
  /** Template of the deciding row or own endpoint; `*` for an open route. Never the raw path. */
  readonly route: string;
  /** Canonical path as it may be logged (token ids and over-long segments are cut out). */
  readonly path: string;
  /** `forwarded`, `answered` by shopward itself, `refused`, or `aborted` by the client before an answer. */
  readonly decision: 'forwarded' | 'answered' | 'refused' | 'aborted';
  readonly status: number;
  readonly rejection?: RejectionName | undefined;
  /** Stable word for why, such as `expired` or `lease-busy`. */
  readonly reason?: string | undefined;
  /** What would have been refused, were the row or the proxy not in observe mode. */
  readonly observed?: RejectionName | undefined;
  /** Milliseconds from the request head to the end of the response. */
  readonly durationMs: number;
  /** Milliseconds that the upstream took of it, when it was asked. */
  readonly upstreamMs?: number | undefined;
  readonly clientAddress: string;
  /** Cause of a fault for the log (an error's code word, not its message). */
  readonly fault?: string | undefined;
}

/** A canonical path as it may be logged. */
export type RedactPath = (segments: readonly string[]) => string;

/** Longest path segment that is logged; tokens are longer, ids of a shop are not. */
const longestSegment = 80;
const cut = '/…';

/**
 * Cuts segments that may hold a secret out of paths: over-long ones, and all those after one of `words`, which stand
 * before a token's id, however it is spelled or what stands between (`/REFRESH-TOKENS;x//ID`, `/index.phprefresh-tokens/ID`).
 */
export function createRedactPath(words: readonly string[]): RedactPath {
  const lowered = words.map((word) => word.toLowerCase());
  const announcesSecret = (segment: string) => {
    const text = segment.toLowerCase();
    return lowered.some((word) => text.includes(word));
  };
  return (segments) => {
    let path = '';
    let isBehind = false;
    for (const segment of segments) {
      const announces = announcesSecret(segment);
      // After an encoded slash the id is in the same segment.
      const isSecret =
        (isBehind && segment !== '' && segment !== 'mine') || (announces && segment.includes('%2F'));
      path += isSecret || segment.length > longestSegment ? cut : `/${segment}`;
      isBehind ||= announces;
    }
    return path;
  };
}

/** The words before the ids of tokens: the shop's own, and those of configured endpoints that name a token. */
export function tokenWords(templates: readonly string[]): string[] {
  const words = templates.flatMap((template) => /\/([^/{}]+)\/\{[^/]*\}$/.exec(template)?.[1] ?? []);
  return [...new Set(['refresh-tokens', ...words])];
}

/** One line an exchange. */
interface AccessLog {
  write(record: ExchangeRecord): void;
}

interface AccessLogOptions {
  readonly log: Log;
  /** Lines a second of one and the same refusal; the rest of them is counted in one line. Default: 200. Only tests set it. */
  readonly maxRefusalLines?: number;
  /** Length of that second. Default: 1000. Only tests set it. */
  readonly windowMs?: number;
}

interface Window {
  lines: number;
  hidden: number;
}

/**
 * The access log. Whoever floods us with requests that are refused, which costs him little, must not fill the disk or
 * keep us busy writing: metrics count every one of them, the log names the first ones and says how many were left out.
 * What was forwarded is always logged: the shop's own pace bounds it.
 */
export function createAccessLog({
  log,
  maxRefusalLines = 200,
  windowMs = 1000,
}: AccessLogOptions): AccessLog {
  const windows = new Map<RejectionName, Window>();

  const openWindow = (rejection: RejectionName): Window => {
    const window = { lines: 0, hidden: 0 };
    windows.set(rejection, window);
    const close = () => {
      windows.delete(rejection);
      if (window.hidden === 0) return;
      const { hidden } = window;
      log.warn(
        { event: 'requests-not-logged', rejection, count: hidden },
        `${hidden} more requests were refused so`,
      );
    };
    setTimeout(close, windowMs).unref();
    return window;
  };

  const isFlooded = (rejection: RejectionName): boolean => {
    const window = windows.get(rejection) ?? openWindow(rejection);
    if (window.lines < maxRefusalLines) {
      window.lines++;
      return false;
    }
    window.hidden++;
    return true;
  };

  return {
    write(record) {
      // Faults of the upstream and our own are worth a look; a refusal says something about the client.
      const level = record.status >= 500 ? 'warn' : 'info';
      if (!log.isLevelEnabled(level)) return;
      if (record.decision === 'refused' && record.rejection && isFlooded(record.rejection)) return;
      log[level]({ event: 'request', ...record }, `${record.method} ${record.path} ${record.status}`);
    },
  };
}
