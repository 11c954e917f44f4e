import { mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = '/sys/fs/cgroup';

/**
 * A group of processes that share one memory limit of the kernel, as a container does. Undefined: no limit can be set on
 * this machine (no cgroups, or no permission).
 */
export function limitMemory(mib: number) {
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
    /** Command that starts the command after it in the group. */
    launcher: ['sh', '-c', `echo $$ > ${group}/cgroup.procs; exec "$@"`, 'sh'],
    /** Processes that the kernel ended for lack of memory. */
    killed: () =>
      Number(/^oom_kill (\d+)/m.exec(readFileSync(path.join(group, events), 'utf8'))?.[1] ?? Number.NaN),
    /** Call it after all of its processes have ended. */
    close: () => rmdirSync(group),
  };
}
