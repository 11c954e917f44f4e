import { readFileSync } from 'node:fs';

/** CPU microseconds (user + system) that a process and its children have used, from the operating system's accounting. */
export function cpuMicroseconds(pids: readonly number[]): number {
  const ticks = pids.map(ticksOf).reduce((sum, one) => sum + one, 0);
  return (ticks * 1_000_000) / ticksPerSecond;
}

/** Peak resident memory in MiB, as the kernel noted it. */
export function peakMemoryMiB(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

/** USER_HZ of Linux; fixed for programs whatever the kernel's own tick is. */
const ticksPerSecond = 100;

function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may hold spaces; fields are counted behind it: utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
