import { mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** A group of processes that the kernel lets have so much memory together, as a container has. */
export interface MemoryLimit {
  /** Starts what follows it in the group. */
  readonly launcher: readonly string[];
  /** Processes that the kernel ended for lack of memory. */
  killed(): number;
  /** Once all of its processes have ended. */
  close(): void;
}

const root = '/sys/fs/cgroup';

/** Undefined: this machine lets us limit nothing (no cgroups, or no right to make one). */
export function limitMemory(mib: number): MemoryLimit | undefined {
  const isFirst = statSync(path.join(root, 'memory'), { throwIfNoEntry: false })?.isDirectory() === true;
  const group = path.join(root, isFirst ? 'memory' : '', `shopward-test-${process.pid}`);
  const [limit, events] = isFirst
    ? ['memory.limit_in_bytes', 'memory.oom_control']
    : ['memory.max', 'memory.events'];
  try {
    mkdirSync(group);
    writeFileSync(path.join(group, limit), `${mib * 2 ** 20}`);
  } catch {
    return undefined;
  }
  return {
    launcher: ['sh', '-c', `echo $$ > ${group}/cgroup.procs; exec "$@"`, 'sh'],
    killed: () =>
      Number(/^oom_kill (\d+)/m.exec(readFileSync(path.join(group, events), 'utf8'))?.[1] ?? Number.NaN),
    close: () => rmdirSync(group),
  };
}
