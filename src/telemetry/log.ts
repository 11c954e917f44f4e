import { type DestinationStream, destination, type Logger, type LoggerOptions, pino } from 'pino';

export type Log = Logger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/**
 * One JSON line an event on stdout; pretty on a terminal. Nothing of a request but the exchange record is ever given
 * to it, and faults are logged by name, code and message of their own, without the payloads that libraries attach.
 */
export function createLog(level: LogLevel, options: { pretty?: boolean; worker?: number } = {}): Log {
  const pretty = options.pretty ?? (process.stdout.isTTY === true || process.env.SHOPWARD_LOG === 'pretty');
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
  return pretty ? pino(pinoOptions) : pino(pinoOptions, openStdout());
}

/** Bytes of lines that wait for a disk to have room again; more are dropped. */
const keptBytes = 1024 * 1024;
/** Octets that a pipe takes as one piece, whoever else writes to it (PIPE_BUF of Linux): workers share theirs. */
const wholeBytes = 4096;

/** What became of writing to standard output, which the process has but once. */
const output = { failures: 0, fault: undefined as string | undefined };

/** Failed writes so far, and the system's word for the last one unless one has succeeded since. */
export function logOutput(): Readonly<typeof output> {
  return output;
}

/**
 * Standard output. A full disk behind it ends neither the process nor a request. The lines of one turn of the event loop
 * go out in few pieces, since a write costs more than the line; a process that is killed loses those of its last turn.
 */
function openStdout(): DestinationStream {
  const stdout = destination({ dest: 1, sync: true, maxLength: keptBytes });
  // Unheard, a failed write would be a fault that nobody caught.
  stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    output.failures++;
    output.fault = code ?? 'unknown fault';
  });
  stdout.on('write', () => {
    output.fault = undefined;
  });
  let lines = '';
  let bytes = 0;
  const flushSync = () => {
    const piece = lines;
    lines = '';
    bytes = 0;
    if (piece !== '') stdout.write(piece);
  };
  process.on('exit', flushSync);
  return {
    write(line) {
      const length = Buffer.byteLength(line);
      if (bytes + length > wholeBytes) flushSync();
      if (lines === '') setImmediate(flushSync);
      lines += line;
      bytes += length;
    },
    // Pino asks for it behind a fatal line.
    flushSync,
  } as DestinationStream;
}

/** Errors of libraries carry claims, commands and URLs with passwords; three plain words of them are enough. */
function serialiseFault(fault: unknown): Record<string, unknown> {
  if (!(fault instanceof Error)) return { type: typeof fault };
  const { name, message, code, stack } = fault as NodeJS.ErrnoException;
  return { type: name, code, message: withoutCredentials(message), stack: withoutCredentials(stack ?? '') };
}

/** Hides the user part of URLs, up to the last `@` it may be, and anything shaped like a JSON Web Token. */
export function withoutCredentials(text: string): string {
  return text.replace(/\S+/g, withoutUser).replace(/[A-Za-z0-9_.-]{32,}/g, withoutTokens);
}

/** Of a word that may be a URL. */
function withoutUser(word: string): string {
  let start = word.indexOf('//');
  while (start > 0 && word.startsWith('file:', start - 5)) start = word.indexOf('//', start + 1);
  const end = word.lastIndexOf('@');
  return start === -1 || end < start ? word : `${word.slice(0, start)}//…${word.slice(end)}`;
}

/** Of parts between dots, three of ten characters or more in a row are a token. */
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
