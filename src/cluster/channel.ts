import type { PackedList } from '../access/packed-list.ts';
import type { InspectToken, TokenInspection } from '../access/token-inspection.ts';
import type { SystemState } from '../admin/system-endpoints.ts';
import type { ComponentHealth } from '../app/process-status.ts';
import type { Secrets } from '../app/secrets.ts';
import type { Config } from '../config/schema.ts';
import type { Counting } from '../rollout/counts.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { MetricValues } from '../telemetry/metrics.ts';
import type { Purge } from '../url-resolver/purges.ts';

/**
 * The configuration of a worker. The primary sends it, so a replacement runs with the same one even if the file has changed
 * since.
 */
export interface WorkerStart {
  /** Counts from 1; a replacement has the number of the worker that it replaces. */
  readonly number: number;
  readonly version: string;
  readonly config: Config;
  /** The list in force. */
  readonly protectedList: PackedList;
  readonly secrets: Secrets;
}

/** Calls from the primary to a worker. */
export interface WorkerCalls {
  /** Resolves to the public URL once requests are served. */
  start(start: WorkerStart): Promise<string>;
  /** Drains; then the process ends. */
  stop(graceMs: number): void;
  /** Answered as long as the event loop runs. */
  ping(): true;
  reload(): Promise<void>;
  list(packed: PackedList): Promise<void>;
  secrets(secrets: Secrets): Promise<void>;
  health(): Promise<readonly ComponentHealth[]>;
  metrics(): Promise<MetricValues>;
  system(): Promise<SystemState>;
  rollout(): Promise<Counting | undefined>;
  inspectToken(question: {
    readonly token: string;
    readonly asked: Parameters<InspectToken>[1];
  }): Promise<TokenInspection>;
  purge(which: Purge): Promise<'purged' | 'unavailable' | undefined>;
}

/** Calls from a worker to the primary. */
export interface PrimaryCalls {
  /** Exchanges since the last call, the oldest first. */
  exchanges(records: readonly ExchangeRecord[]): void;
  /** After an uncaught exception the worker only finishes requests in flight; the primary must replace it now. */
  failing(): void;
}

/** One end of the IPC channel: `process` in a worker, the worker's process in the primary. */
export interface Line {
  send(message: object, done: (fault: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

type Calls = Readonly<Record<string, (argument: never) => unknown>>;

export interface Channel {
  /** Calls a function at the other end. Rejects with its error, or when no answer has come in time. */
  ask(name: string, argument: unknown, timeoutMs: number): Promise<unknown>;
  /** Calls without an answer. Resolves when the message is written, or the other end has gone. */
  emit(name: string, argument: unknown): Promise<void>;
}

interface Message {
  readonly call?: string;
  readonly argument?: unknown;
  /** Links an answer to its question. */
  readonly id?: number;
  readonly value?: unknown;
  readonly fault?: { readonly message: string; readonly code: string | undefined };
}

/** Calls between processes. Messages on the line that are not shopward's are ignored. */
export function createChannel(line: Line, calls: Calls): Channel {
  const open = new Map<number, (answer: Message) => void>();
  let lastId = 0;

  const send = (message: Message) =>
    new Promise<void>((resolve) => {
      try {
        // Errors are ignored: a lost question times out, and a dead process is noticed by its exit.
        line.send({ shopward: message }, () => resolve());
      } catch {
        resolve();
      }
    });

  line.on('message', (received) => {
    const message = (received as { shopward?: Message } | null)?.shopward;
    if (message === undefined) return;
    if (message.call !== undefined) void answer(message.call, message);
    else if (message.id !== undefined) open.get(message.id)?.(message);
  });

  async function answer(name: string, { argument, id }: Message): Promise<void> {
    const call = calls[name] as ((argument: unknown) => unknown) | undefined;
    try {
      if (call === undefined) throw new Error(`no handler for ${name}`);
      const value = await call(argument);
      if (id !== undefined) await send({ id, value });
    } catch (fault) {
      const { message, code } = fault as NodeJS.ErrnoException;
      if (id === undefined) throw fault;
      await send({ id, fault: { message, code } });
    }
  }

  return {
    ask: (call, argument, timeoutMs) =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        const finish = (end: () => void) => {
          clearTimeout(timer);
          open.delete(id);
          end();
        };
        const timer = setTimeout(
          () => finish(() => reject(new Error(`no answer to ${call}`))),
          timeoutMs,
        ).unref();
        open.set(id, ({ value, fault }) =>
          finish(() => {
            if (fault === undefined) resolve(value);
            else reject(Object.assign(new Error(fault.message), { code: fault.code }));
          }),
        );
        void send({ call, argument, id });
      }),
    emit: (call, argument) => send({ call, argument }),
  };
}
