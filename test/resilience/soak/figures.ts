/** Figures of one process at one moment. */
export interface Figures {
  /** Milliseconds since the start of the run. */
  readonly atMs: number;
  readonly rssBytes: number;
  /** V8's heap: `heapBytes` is used, `heapTotalBytes` reserved. The reserved size varies by some 30 MiB. */
  readonly heapBytes: number;
  readonly heapTotalBytes: number;
  /** External memory, such as Buffers. */
  readonly externalBytes: number;
  readonly openFiles: number;
  readonly activeRequests: number;
  readonly upstreamRequests: number;
}

/** Longest time of a reading. A process that does not answer is reported, not awaited. */
const patienceMs = 10_000;

/** Reads `/metrics` of the admin port; undefined: no answer in time. */
export async function tryReadFigures(adminUrl: string, startedMs: number): Promise<Figures | undefined> {
  return readFigures(adminUrl, startedMs).catch(() => undefined);
}

/** The same, but rejects without an answer in time. */
export async function readFigures(adminUrl: string, startedMs: number): Promise<Figures> {
  const signal = AbortSignal.timeout(patienceMs);
  const text = await (await fetch(`${adminUrl}/metrics`, { signal })).text();
  const value = (name: string) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)?.[1]);
  return {
    atMs: performance.now() - startedMs,
    rssBytes: value('process_resident_memory_bytes'),
    heapBytes: value('nodejs_heap_size_used_bytes'),
    heapTotalBytes: value('nodejs_heap_size_total_bytes'),
    externalBytes: value('nodejs_external_memory_bytes'),
    openFiles: value('process_open_fds'),
    activeRequests: value('http_server_active_requests'),
    upstreamRequests: value('shopward_upstream_active_requests'),
  };
}

/** Slope of a value over time by least squares, for each minute. */
export function slopePerMinute(figures: readonly Figures[], value: (one: Figures) => number): number {
  const n = figures.length;
  if (n < 2) return 0;
  const meanX = figures.reduce((sum, { atMs }) => sum + atMs, 0) / n;
  const meanY = figures.reduce((sum, one) => sum + value(one), 0) / n;
  const over = figures.reduce((sum, one) => sum + (one.atMs - meanX) * (value(one) - meanY), 0);
  const under = figures.reduce((sum, { atMs }) => sum + (atMs - meanX) ** 2, 0);
  return (over / under) * 60_000;
}
