import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Shopward } from '../../harness/shopward.ts';

/** Environment with which a process reports its memory. */
export const probed = {
  NODE_OPTIONS: `--import ${pathToFileURL(path.join(import.meta.dirname, 'memory-probe.ts')).href}`,
};

/** An idle process varies by less than this. */
const breathBytes = 65_536;
const mostRuns = 4;

/** The memory of one process. */
export class ProcessMemory {
  readonly #shopward: Shopward;
  #seq = 0;

  constructor(shopward: Shopward) {
    this.#shopward = shopward;
  }

  /**
   * Bytes in use once they stop falling, because memory is released late, above all on a busy machine. Returns at once
   * if they are below `enough`.
   */
  async bytes(enough = 0): Promise<number> {
    for (let before = await this.#look(); ; ) {
      if (before < enough) return before;
      await sleep(20);
      const now = await this.#look();
      if (now > before - breathBytes) return Math.min(now, before);
      before = now;
    }
  }

  async #look(): Promise<number> {
    this.#seq += 1;
    const own = this.#seq;
    this.#shopward.signal('SIGUSR2');
    const line = await this.#shopward.waitForLog(({ event, seq }) => event === 'memory' && seq === own);
    return Number(line.bytes);
  }
}

/**
 * The least of several runs, until one is below the limit: memory that is really kept shows in each run. A run with a
 * large decrease does not count: V8 drops start-up data once, which would hide a growth.
 */
export async function leastBytes(
  allowed: number,
  run: () => Promise<number>,
  runs = mostRuns,
): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs && least >= allowed; i += 1) {
    const bytes = await run();
    if (bytes > -allowed / 4) least = Math.min(least, bytes);
  }
  return least;
}
