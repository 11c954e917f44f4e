/** A process that checks one list for `checkListAside`, and ends. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { checkList, type ListCheckInput, type ListCheckMessage } from './list-check.ts';

// Ignored: a terminal or an init system signals the whole process group, and a check ends soon by itself.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) process.on(signal, () => {});

try {
  // If memory runs out, the kernel kills this process, not one that serves requests.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // Only Linux has this file.
}

const self = process as Required<typeof process>;
const tell = (message: ListCheckMessage) =>
  new Promise((told) => self.send(message, undefined, undefined, told));

const [input] = (await once(process, 'message')) as [ListCheckInput];
await tell({ check: await checkList(input, (packed) => tell({ packed })) });
process.exit();
