import { type Logger, pino } from 'pino';
import type { ExchangeRecord } from './exchange-record.ts';

export type Log = Logger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/**
 * One JSON line an event on stdout; pretty on a terminal. Nothing of a request but the exchange record is ever given
 * to it, and faults are logged by name, code and message of their own, without the payloads that libraries attach.
 */
export function createLog(level: LogLevel, options: { pretty?: boolean; worker?: number } = {}): Log {
  const pretty = options.pretty ?? (process.stdout.isTTY === true || process.env.SHOPWARD_LOG === 'pretty');
  return pino({
    level,
    base: options.worker === undefined ? null : { worker: options.worker },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: serialiseFault },
    ...(pretty && {
      transport: {
        target: 'pino-pretty',
        options: { translateTime: 'SYS:HH:MM:ss', ignore: 'event', messageKey: 'msg', singleLine: true },
      },
    }),
  });
}

/** One access line; refusals and upstream faults at `warn`, so that a quiet level still shows them. */
export function logExchange(log: Log, record: ExchangeRecord): void {
  const level = record.status >= 500 ? 'warn' : 'info';
  if (!log.isLevelEnabled(level)) return;
  log[level]({ event: 'request', ...record }, `${record.method} ${record.path} ${record.status}`);
}

/** Errors of libraries carry claims, commands and URLs with passwords; three plain words of them are enough. */
function serialiseFault(fault: unknown): Record<string, unknown> {
  if (!(fault instanceof Error)) return { type: typeof fault };
  const { name, message, code, stack } = fault as NodeJS.ErrnoException;
  return { type: name, code, message: withoutCredentials(message), stack: withoutCredentials(stack ?? '') };
}

/** Hides the user part of URLs and anything shaped like a JSON Web Token. */
export function withoutCredentials(text: string): string {
  return text
    .replace(/\/\/[^/@\s]*@/g, '//…@')
    .replace(/[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g, '…');
}
