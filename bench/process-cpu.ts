import { readdirSync, readFileSync } from 'node:fs';

/**
 * CPU microseconds (user + system) of all threads of the processes, from the scheduler's accounting in nanoseconds; if the
 * kernel has none, from the ticks of `stat` (10 ms each).
 */
export function cpuMicroseconds(pids: readonly number[]): number {
  return pids
    .map((pid) => scheduledMicroseconds(pid) ?? tickMicroseconds(pid))
    .reduce((sum, one) => sum + one, 0);
}

/** Peak resident memory in MiB, as counted by the kernel. */
export function peakMemoryMiB(pid: number): number {
  return memoryMiB(pid, 'VmHWM');
}

/** Resident memory in MiB. */
export function residentMemoryMiB(pid: number): number {
  return memoryMiB(pid, 'VmRSS');
}

function memoryMiB(pid: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

/** Threads of Node and of the C proxies live as long as their process, so no ended thread is missed. */
function scheduledMicroseconds(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = threads.map((thread) =>
      Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
    );
    return nanoseconds.reduce((sum, one) => sum + one, 0) / 1000;
  } catch {
    return undefined;
  }
}

/** USER_HZ of Linux, which does not depend on the kernel's own tick. */
const ticksPerSecond = 100;

function tickMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may contain spaces, so count the fields after it: utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond;
}
