import type { RejectionName } from '../http/rejection.ts';
import type { ExchangeRecord } from './exchange-record.ts';
import type { Log } from './log.ts';

/** One line an exchange. */
export interface AccessLog {
  write(record: ExchangeRecord): void;
}

export interface AccessLogOptions {
  readonly log: Log;
  /** Lines a second of one and the same refusal; the rest of them is told in one line. Default: 200. */
  readonly maxRefusalLines?: number;
  /** Length of that second. Default: 1000. */
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
