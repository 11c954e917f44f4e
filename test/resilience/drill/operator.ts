import { setTimeout as sleep } from 'node:timers/promises';
import type { Shopward } from '../../harness/shopward.ts';

/** What whoever is on call sees: the log, and `/readyz` as often as a probe. */
export interface Operator {
  /** Lines that are not about one request, by `event`. */
  events(): ReadonlyMap<string, number>;
  /** The same lines, as text. */
  lines(): readonly string[];
  /** Lines about requests. */
  requestLines(): number;
  /** Reasons that `/readyz` gave, each once, with `N` for numbers that change. */
  readonly reasons: ReadonlySet<string>;
  /** Probes without an answer within a second, the longest row of them, and probes that said 503. */
  readonly unanswered: number;
  readonly longestSilence: number;
  readonly unready: number;
  close(): Promise<void>;
}

/** What `/readyz` must tell in a drill, it tells for longer than two of these. */
const probeMs = 400;
/** As in deploy/kubernetes. */
const probeTimeoutMs = 1_000;

/** Watches from now on. */
export function watch(shopward: Shopward): Operator {
  const { log } = shopward;
  const before = log().length;
  const reasons = new Set<string>();
  let unanswered = 0;
  let silence = 0;
  let longestSilence = 0;
  let unready = 0;
  let isWatching = true;
  const look = async () => {
    try {
      const signal = AbortSignal.timeout(probeTimeoutMs);
      const response = await fetch(`${shopward.adminUrl}/readyz`, { signal });
      silence = 0;
      if (response.status !== 200) unready += 1;
      const state = (await response.json()) as { readonly reasons: readonly string[] };
      for (const reason of state.reasons) reasons.add(withoutNumbers(reason));
    } catch {
      // Nobody asks one that was told to end.
      if (log().some(({ event }) => event === 'draining')) isWatching = false;
      if (!isWatching) return;
      unanswered += 1;
      silence += 1;
      longestSilence = Math.max(longestSilence, silence);
    }
  };
  const watching = (async () => {
    while (isWatching) {
      await look();
      await sleep(probeMs);
    }
  })();
  let after: number | undefined;
  const since = () => log().slice(before, after);
  const notRequests = () => since().filter(({ event }) => event !== 'request');
  return {
    events: () => {
      const counts = new Map<string, number>();
      for (const { event } of notRequests()) {
        counts.set(String(event), (counts.get(String(event)) ?? 0) + 1);
      }
      return counts;
    },
    lines: () => notRequests().map((line) => `${line.event}: ${withoutNumbers(String(line.msg))}`),
    requestLines: () => since().length - notRequests().length,
    reasons,
    get unanswered() {
      return unanswered;
    },
    get longestSilence() {
      return longestSilence;
    },
    get unready() {
      return unready;
    },
    close: async () => {
      isWatching = false;
      await watching;
      after = log().length;
    },
  };
}

/** What differs from run to run: ports, seconds, percentages. Small counts, such as "0 of 1 replicas", stay. */
function withoutNumbers(text: string): string {
  return text
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/\d+(?:\.\d+)?(?= ?(?:s\b|seconds?|%|ms))/g, 'N')
    .replace(/\b\d{4,}\b/g, 'N');
}
