/** So many are enough to see what it is. */
const maxPointers = 10;

/**
 * JSON pointers (RFC 6901) of the values in which two documents differ, the first ten; none where they are equal. A
 * member that only one of them has counts as one difference, whatever is below it.
 */
export function differingPointers(one: unknown, other: unknown): string[] {
  const found: string[] = [];
  // A list, not a recursion: how deep a document is, is its author's choice.
  const open: Array<readonly [pointer: string, one: unknown, other: unknown]> = [['', one, other]];
  for (let next = open.pop(); next !== undefined && found.length < maxPointers; next = open.pop()) {
    const [pointer, left, right] = next;
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) {
      if (left !== right) found.push(pointer);
      continue;
    }
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    for (const name of [...names].reverse()) {
      open.push([`${pointer}/${escapeName(name)}`, left[name], right[name]]);
    }
  }
  return found;
}

function escapeName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
