import { type FieldList, fieldValue } from '../http/field-list.ts';

/** Milliseconds for which an idle connection is used again where the upstream says nothing, unless configured. */
export const defaultIdleTimeoutMs = 4_000;

/** Allows for the request and the upstream's FIN that may cross on the way. */
const marginMs = 1_000;
const longestMs = 600_000;

/** An upstream that ends a connection after a shorter idle time hardly did so because it was idle. */
const shortestShownMs = 100;

/**
 * Milliseconds within which an idle connection is recent where the upstream says nothing: its clock began before ours, as
 * long ago as this process or that one may stand still, and the request has to be read there in time.
 */
const recentMs = 250;

const timeoutSaid = /(?:^|[,; \t])timeout="?(\d{1,6})/i;

/** `Keep-Alive: timeout=5`: a second less, so that a request and the upstream's FIN do not cross on the way. */
export function idleTimeoutSaid(fields: FieldList): number | undefined {
  const said = fieldValue(fields, 'keep-alive');
  const seconds = said === undefined ? undefined : timeoutSaid.exec(said)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds) * 1000 - marginMs, longestMs);
}

/**
 * For how long an idle connection may be used. The upstream's own word (`Keep-Alive: timeout`) counts, else the
 * configured time. If the upstream ends idle connections sooner, the time shrinks to what was seen; each connection
 * that outlives it lets it grow again, so that a restart of the upstream, which ends connections of any age, is soon
 * forgotten.
 */
export class IdleTimeout {
  readonly #unsaidMs: number;
  #shownMs = Number.POSITIVE_INFINITY;

  constructor(unsaidMs: number) {
    this.#unsaidMs = unsaidMs;
  }

  /** Milliseconds for which a connection may be used if it does no harm to lose the race against its end. */
  usableMs(saidMs: number | undefined): number {
    return Math.min(saidMs ?? this.#unsaidMs, this.#shownMs);
  }

  /** Milliseconds within which a connection is as good as new for any request. */
  recentMs(saidMs: number | undefined): number {
    const usableMs = this.usableMs(saidMs);
    if (saidMs !== undefined && this.#shownMs === Number.POSITIVE_INFINITY) return usableMs;
    return Math.min(recentMs, usableMs / 4);
  }

  /** The upstream ended a connection that was idle for `idleMs`. */
  endedAfter(idleMs: number): void {
    this.#shownMs = Math.max(shortestShownMs, Math.min(this.#shownMs, idleMs * 0.75));
  }

  /** A connection was idle for `idleMs`, to the end of its time, and was still open. */
  outlived(idleMs: number): void {
    this.#shownMs = Math.max(this.#shownMs, idleMs * 1.25);
    if (this.#shownMs > longestMs) this.#shownMs = Number.POSITIVE_INFINITY;
  }
}
