import type { TokenInspection } from '../access/token-inspection.ts';
import type { SystemState } from '../admin/system-endpoints.ts';
import type { ComponentHealth } from '../app/process-status.ts';
import type { Secrets } from '../app/secrets.ts';
import type { Config } from '../config/schema.ts';
import type { Eventually } from '../lib/eventually.ts';
import type { FileBytes } from '../lib/watched-file.ts';
import type { TokenCensus } from '../refresh-tokens/census.ts';
import type { RolloutState } from '../rollout/rollout.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { MetricValues } from '../telemetry/metrics.ts';
import type { Purge } from '../url-resolver/purge-log.ts';

/**
 * All that a worker needs. It is handed over, not read anew: a worker that replaces another one runs under the same
 * configuration, whatever stands in the files by then.
 */
export interface WorkerStart {
  /** Counts from 1; one that replaces another takes its number. */
  readonly number: number;
  readonly config: Config;
  /** Text of the list in force, and the last content of its file where that was refused. */
  readonly protectedList: string;
  readonly refusedList: FileBytes | undefined;
  readonly secrets: Secrets;
}

/** What the primary asks of a worker. */
export interface WorkerCalls {
  /** Resolves to the public URL once requests are served. */
  start(start: WorkerStart): Promise<string>;
  /** Drains; then the process ends. */
  stop(graceMs: number | undefined): void;
  /** Answered by whoever's event loop turns. */
  ping(): true;
  reload(): Promise<void>;
  list(content: FileBytes): Promise<void>;
  secrets(secrets: Secrets): Promise<void>;
  health(): Eventually<readonly ComponentHealth[]>;
  metrics(): Promise<MetricValues>;
  system(): Promise<SystemState>;
  census(): Promise<TokenCensus | undefined>;
  rollout(): Promise<RolloutState | undefined>;
  inspectToken(question: {
    readonly token: string;
    readonly scopes: readonly string[];
  }): Promise<TokenInspection>;
  purge(which: Purge): Promise<'purged' | 'unavailable' | undefined>;
}

/** What a worker tells the primary. */
export interface PrimaryCalls {
  /** Exchanges since the last time, the oldest first. */
  exchanges(records: readonly ExchangeRecord[]): void;
  /** It met a fault, and only finishes what is in flight: another one is needed now. */
  failing(): void;
}

/** One end of the line between the primary and a worker; `process` in a worker, the worker's process in the primary. */
export interface Line {
  send(message: object, done: (fault: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

/** What may be asked of this end, by name. */
type Calls = Readonly<Record<string, (argument: never) => unknown>>;

export interface Channel {
  /** The other end's answer; rejects with its fault, or when none has come in time. */
  ask(name: string, argument: unknown, timeoutMs: number): Promise<unknown>;
  /** No answer is wanted; resolves when the message is out, or the other end is gone. */
  emit(name: string, argument: unknown): Promise<void>;
}

interface Message {
  readonly call?: string;
  readonly argument?: unknown;
  /** Of a question and its answer. */
  readonly id?: number;
  readonly value?: unknown;
  readonly fault?: { readonly message: string; readonly code: string | undefined };
}

/** Questions and answers between processes. What is not ours on the line is left alone. */
export function createChannel(line: Line, calls: Calls): Channel {
  const open = new Map<number, (answer: Message) => void>();
  let lastId = 0;

  const send = (message: Message) =>
    new Promise<void>((resolve) => {
      try {
        // Whoever does not answer is missed by the time-out, or by its exit.
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
      if (call === undefined) throw new Error(`nobody answers ${name}`);
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
        const settle = (end: () => void) => {
          clearTimeout(timer);
          open.delete(id);
          end();
        };
        const timer = setTimeout(
          () => settle(() => reject(new Error(`no answer to ${call}`))),
          timeoutMs,
        ).unref();
        open.set(id, ({ value, fault }) =>
          settle(() => {
            if (fault === undefined) resolve(value);
            else reject(Object.assign(new Error(fault.message), { code: fault.code }));
          }),
        );
        void send({ call, argument, id });
      }),
    emit: (call, argument) => send({ call, argument }),
  };
}
