import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';

/** A real Redis whose wall clock a test sets. */
export interface ShiftedRedis extends SingleRedis {
  /** Sets the offset of Redis's clock in seconds. */
  setClock(offSeconds: number): void;
}

/**
 * Undefined without a C compiler or Linux: the clock of a single process can only be changed from inside, by a
 * preloaded library in C.
 */
export async function startShiftedRedis(): Promise<ShiftedRedis | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-clock-'));
  const [library, file] = [join(folder, 'shifted-clock.so'), join(folder, 'shift')];
  const source = join(import.meta.dirname, 'shifted-clock.c');
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source], { stdio: 'ignore' });
  } catch {
    process.stderr.write(
      "test: no C compiler (cc), so no test sets Redis's clock. Install gcc and libc6-dev\n",
    );
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const setClock = (offSeconds: number) => {
    const octets = Buffer.alloc(8);
    octets.writeBigInt64LE(BigInt(offSeconds));
    const shift = openSync(file, 'r+');
    writeSync(shift, octets, 0, octets.length, 0);
    closeSync(shift);
  };
  writeFileSync(file, Buffer.alloc(8));
  const redis = await startRedis({ env: { LD_PRELOAD: library, SHIFT_FILE: file } });
  return {
    ...redis,
    setClock,
    close: async () => {
      await redis.close();
      rmSync(folder, { recursive: true });
    },
  };
}
