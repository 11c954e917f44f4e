/** The known name that a mistyped name most likely means; undefined: none is similar. */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(typed.length / 3));
  let best: { name: string; edits: number } | undefined;
  for (const name of known) {
    if (Math.abs(name.length - typed.length) > allowed) continue;
    const edits = editDistance(typed.toLowerCase(), name.toLowerCase());
    if (edits <= allowed && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { name, edits };
  }
  return best?.name;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const above = rows[i - 1] ?? [];
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let edits = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + cost);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, (rows[i - 2]?.[j - 2] ?? edits) + 1);
      row.push(edits);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}
