import { readFileSync } from 'node:fs';

/** Process ids of the children. A primary has its workers and, while an edit of the list is checked, the checking process. */
export function childrenOf({ pid }: { readonly pid: number }): number[] {
  return (readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []).map(Number);
}
