import type { ClientResponse } from './client-response.ts';
import type { ForwardResult } from './forward.ts';
import type { ResponseRelay } from './response-relay.ts';

/**
 * The state of a forwarded exchange, with what is known in it. docs/decisions/forwarded-exchange.md has the events of
 * each state, and what holds in all of them.
 */
export type ExchangeState = Queued | Sent | Streaming | Settling | Done;
type StateName = ExchangeState['name'];

/** It waits for a connection. */
interface Queued {
  readonly name: 'queued';
}

/** It has a connection, and no final head was received. */
interface Sent {
  readonly name: 'sent';
  /** `performance.now()` when it was given the first one. */
  readonly sinceMs: number;
  /** Stops the watch over a streaming request body. */
  readonly stopWatching: (() => void) | undefined;
  /** The first connection was stale. */
  isRetried: boolean;
}

/** The response is being received; the request's body may still be on its way. */
interface Streaming extends Omit<Sent, 'name'> {
  readonly name: 'streaming';
  readonly relay: ResponseRelay;
}

/** The upstream's part is over, and `onOutcome` is being asked. */
export interface Settling {
  readonly name: 'settling';
  readonly relay: ResponseRelay | undefined;
  readonly queuedMs: number;
  readonly upstreamMs: number;
  readonly isRetried: boolean;
}

/** The caller has the outcome. */
interface Done {
  readonly name: 'done';
}

export const queued: Queued = { name: 'queued' };
export const done: Done = { name: 'done' };

const successors: Readonly<Record<StateName, readonly StateName[]>> = {
  queued: ['sent', 'settling'],
  sent: ['streaming', 'settling'],
  streaming: ['settling'],
  settling: ['done'],
  done: [],
};

/** Returns `next`, and throws if it may not follow `state`. Every change of state is made with this function. */
export function entered(state: ExchangeState, next: ExchangeState): ExchangeState {
  if (!successors[state.name].includes(next.name)) throw unexpected(state, next.name);
  return next;
}

/** Returns the state if it has this name (or the other one); throws otherwise. */
export function expected<Name extends StateName>(
  state: ExchangeState,
  name: Name,
  or?: Name,
): Extract<ExchangeState, { name: Name }> {
  if (state.name !== name && state.name !== or) throw unexpected(state, name);
  return state as Extract<ExchangeState, { name: Name }>;
}

/** What remains of an exchange that began at `startedMs` when the upstream's part is over. */
export function settlingOf(state: ExchangeState, startedMs: number, nowMs: number): Settling {
  const sinceMs = 'sinceMs' in state ? state.sinceMs : nowMs;
  return {
    name: 'settling',
    relay: 'relay' in state ? state.relay : undefined,
    queuedMs: sinceMs - startedMs,
    upstreamMs: nowMs - sinceMs,
    isRetried: 'isRetried' in state && state.isRetried,
  };
}

/** What its caller hears. */
export function resultOf(
  { relay, queuedMs, upstreamMs, isRetried }: Settling,
  { status, bytes }: Pick<ClientResponse, 'status' | 'bytes'>,
  end: ForwardResult['end'],
  rejection: ForwardResult['rejection'],
  fault: ForwardResult['fault'],
  cause: unknown,
): ForwardResult {
  const upstreamStatus = relay?.status ?? 0;
  return {
    end,
    rejection,
    status,
    upstreamStatus,
    fault,
    cause,
    queuedMs,
    upstreamMs,
    bytes,
    retried: isRetried,
  };
}

/** The result of an exchange whose end threw. */
export const nothingKnown: ForwardResult = {
  end: 'cut',
  rejection: undefined,
  status: 0,
  upstreamStatus: 0,
  fault: 'internal',
  cause: undefined,
  queuedMs: 0,
  upstreamMs: 0,
  bytes: 0,
  retried: false,
};

function unexpected({ name }: ExchangeState, wanted: StateName): TypeError {
  return new TypeError(`an exchange that is ${name} cannot be ${wanted}`);
}
