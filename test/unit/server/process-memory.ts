import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Shopward } from '../../harness/shopward.ts';

/** With this in its environment a process tells its memory. */
export const probed = {
  NODE_OPTIONS: `--import ${pathToFileURL(path.join(import.meta.dirname, 'memory-probe.ts')).href}`,
};

/** Less than this comes and goes in a process that does nothing. */
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
   * Bytes in use once it falls no more: what was let go leaves in its own time, and late where the machine is busy. Less
   * than `enough` is not waited for to fall further.
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
    const mine = this.#seq;
    this.#shopward.signal('SIGUSR2');
    const line = await this.#shopward.waitForLog(({ event, seq }) => event === 'memory' && seq === mine);
    return Number(line.bytes);
  }
}

/**
 * The least of a few runs, until one is below what is allowed: what is held is held in each of them. A run in which the process
 * let go of much else, as V8 does once of what it read while it started, would hide what is held, and does not count.
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
