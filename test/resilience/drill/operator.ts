import { setTimeout as sleep } from 'node:timers/promises';
import type { Shopward } from '../../harness/shopward.ts';

export type Operator = ReturnType<typeof watch>;

/** Each reason that an outage expects is shown for more than two intervals. */
const probeMs = 400;
/** As in deploy/kubernetes. */
const probeTimeoutMs = 1_000;

/** Watches what an operator sees: the log, and `/readyz` as polled by a probe. */
export function watch(shopward: Shopward) {
  const { log } = shopward;
  const before = log().length;
  /** Reasons that `/readyz` gave, each once, with `N` for numbers that change. */
  const reasons = new Set<string>();
  // Probes without an answer within a second, the longest series of them, and probes with 503.
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
      // A process that drains is not probed.
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
    /** Number of lines that are not about one request, by `event`. */
    events: () => {
      const counts = new Map<string, number>();
      for (const { event } of notRequests()) {
        counts.set(String(event), (counts.get(String(event)) ?? 0) + 1);
      }
      return counts;
    },
    /** The same lines, as text. */
    lines: () => notRequests().map((line) => `${line.event}: ${withoutNumbers(String(line.msg))}`),
    /** Number of lines about requests. */
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

/** Replaces what differs between runs: ports, seconds, percentages. Keeps small counts, such as "0 of 1 replicas". */
function withoutNumbers(text: string): string {
  return text
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/\d+(?:\.\d+)?(?= ?(?:s\b|seconds?|%|ms))/g, 'N')
    .replace(/\b\d{4,}\b/g, 'N');
}
