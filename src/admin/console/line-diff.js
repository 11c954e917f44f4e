/** Comparisons of two lines; more would freeze the page. */
const maxWork = 6_000_000;
const contextLines = 2;

/**
 * Lines that differ between two texts as `{ kind: 'same' | 'added' | 'removed' | 'gap', text, line }`, each with
 * `contextLines` around it; undefined when too much differs. By the longest common subsequence, without the equal ends.
 */
export function diffLines(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end++;
  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  if (left.length * right.length > maxWork) return undefined;

  const same = (text, line) => ({ kind: 'same', text, line });
  const all = [
    ...b.slice(0, start).map((text, i) => same(text, i + 1)),
    ...middle(left, right, start),
    ...b.slice(b.length - end).map((text, i) => same(text, b.length - end + i + 1)),
  ];
  return withContext(all);
}

function middle(left, right, start) {
  const columns = right.length + 1;
  const lengths = new Uint32Array((left.length + 1) * columns);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      const here = i * columns + j;
      lengths[here] =
        left[i] === right[j]
          ? lengths[here + columns + 1] + 1
          : Math.max(lengths[here + columns], lengths[here + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < left.length || j < right.length) {
    const here = i * columns + j;
    if (i < left.length && j < right.length && left[i] === right[j]) {
      lines.push({ kind: 'same', text: right[j++], line: start + j });
      i++;
    } else if (i < left.length && (j >= right.length || lengths[here + columns] >= lengths[here + 1])) {
      lines.push({ kind: 'removed', text: left[i++], line: start + i });
    } else {
      lines.push({ kind: 'added', text: right[j++], line: start + j });
    }
  }
  return lines;
}

function withContext(lines) {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ kind }, i) => {
    if (kind !== 'same') isNear.fill(1, Math.max(0, i - contextLines), i + contextLines + 1);
  });
  const kept = [];
  lines.forEach((line, i) => {
    if (isNear[i]) kept.push(line);
    else if (isNear[i - 1] && isNear.indexOf(1, i) >= 0) kept.push({ kind: 'gap', text: '…', line: 0 });
  });
  return kept;
}
