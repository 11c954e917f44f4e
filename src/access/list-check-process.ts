/** A process that checks one list for `checkListAside`, and ends. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { compileList, type ListCheckInput, type ListCheckMessage, nameDifference } from './list-check.ts';

// A terminal or an init system signals the whole group of processes; a check ends soon by itself.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

try {
  // Where memory is short, the kernel ends this process, and none that serves.
  writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
  // Linux alone has it.
}

const self = process as Required<typeof process>;
const tell = (message: ListCheckMessage) =>
  new Promise((told) => self.send(message, undefined, undefined, told));

async function check(input: ListCheckInput): Promise<void> {
  const { problems, packed } = compileList(input);
  // It takes effect before it is compared.
  if (packed !== undefined) await tell({ packed });
  await tell({ check: { problems, difference: nameDifference(input, packed) } });
  process.exit();
}

const [input] = await once(process, 'message');
await check(input);
