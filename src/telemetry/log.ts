import { isatty } from 'node:tty';
import { type DestinationStream, type LevelWithSilent, type Logger, type LoggerOptions, pino } from 'pino';
import { type Component, counter, healthOf } from '../lib/component.ts';
import { isolated } from '../lib/faults.ts';
import { LogOutput, writeToStdout } from './log-output.ts';

export type Log = Logger;

interface LogOptions {
  /** Default: on a terminal, or by SHOPWARD_LOG. Only tests set it. */
  readonly pretty?: boolean;
  readonly worker?: number;
  /** Where JSON lines go. Default: stdout. Only tests set it. */
  readonly linesTo?: DestinationStream;
}

/**
 * Creates the log: a JSON line for each event on stdout, readable text on a terminal. Of a request only the exchange record is
 * logged; of an error only name, code, message and stack, without the payloads that libraries attach.
 */
export function createLog(level: LevelWithSilent, options: LogOptions = {}): Log {
  const pretty = options.pretty ?? (isatty(1) || process.env.SHOPWARD_LOG === 'pretty');
  const pinoOptions: LoggerOptions = {
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
  };
  return pretty ? pino(pinoOptions) : pino(pinoOptions, options.linesTo ?? openStdout(options.worker));
}

/** The output of all JSON logs of the process, opened by the first log. */
let output: LogOutput | undefined;

/** The component of the log's output. */
export const logComponent: Component = {
  name: 'log',
  title: false,
  health() {
    const { fault, losesLines = false } = output?.status ?? {};
    return healthOf(fault === undefined ? [] : [`log: ${faultText(fault, losesLines)}`]);
  },
  metrics: [
    counter(
      'shopward_log_write_failures',
      'Failed writes of log lines; lines beyond the buffer in memory are lost.',
      () => output?.status.failures ?? 0,
    ),
    counter(
      'shopward_log_dropped_lines',
      'Log lines that were dropped, because their reader is slow or they cannot be written.',
      () => output?.status.droppedLines ?? 0,
    ),
  ],
};

/** For people: why lines are lost. */
function faultText(fault: string, losesLines: boolean): string {
  if (fault === 'EAGAIN') return 'its reader takes no lines, some are lost';
  if (fault === 'EPIPE') return 'its reader is gone (EPIPE), all lines are lost';
  return `lines cannot be written (${fault}), ${losesLines ? 'some are lost' : 'they wait in memory'}`;
}

function openStdout(worker: number | undefined): DestinationStream {
  if (output === undefined) {
    const droppedLine = (count: number) => {
      const time = new Date().toISOString();
      const line = { level: 'warn', time, worker, event: 'log-lines-dropped', count };
      return `${JSON.stringify({ ...line, msg: `${count} log lines were dropped: they could not be written` })}\n`;
    };
    const opened = new LogOutput({ write: writeToStdout(), droppedLine });
    const end = isolated(() => opened.end());
    process.on('exit', end);
    output = opened;
  }
  return output as DestinationStream;
}

/** Octets of a message and of a stack as JSON: a line fits into one write (log-output.ts). */
const [longestMessage, longestStack] = [800, 1600];

/** Only these four fields: errors of libraries carry claims, commands and URLs with passwords. */
function serialiseFault(fault: unknown): Record<string, unknown> {
  if (!(fault instanceof Error)) return { type: typeof fault };
  const { name, message, code, stack } = fault as NodeJS.ErrnoException;
  return {
    type: name,
    code,
    message: shorten(withoutCredentials(message), longestMessage),
    stack: shorten(withoutCredentials(stack ?? ''), longestStack),
  };
}

function shorten(text: string, octets: number): string {
  let short = text.slice(0, octets);
  while (Buffer.byteLength(JSON.stringify(short)) > octets) short = short.slice(0, short.length * 0.9);
  return short;
}

/** Hides everything that looks like a JSON Web Token, and the userinfo of URLs: up to the last `@`, since a password may contain one. */
export function withoutCredentials(text: string): string {
  return text.replace(/\S+/g, withoutUser).replace(/[A-Za-z0-9_.-]{32,}/g, withoutTokens);
}

/** Removes the userinfo from a word that may be a URL. */
function withoutUser(word: string): string {
  let start = word.indexOf('//');
  while (start > 0 && word.startsWith('file:', start - 5)) start = word.indexOf('//', start + 1);
  const end = word.lastIndexOf('@');
  return start === -1 || end < start ? word : `${word.slice(0, start)}//…${word.slice(end)}`;
}

/** Hides tokens: three parts of at least ten characters, joined by dots. */
function withoutTokens(run: string): string {
  const parts = run.split('.');
  const shown: string[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const isToken = parts.length - at > 2 && parts.slice(at, at + 3).every((part) => part.length >= 10);
    shown.push(isToken ? '…' : (parts[at] ?? ''));
    if (isToken) at += 2;
  }
  return shown.join('.');
}
