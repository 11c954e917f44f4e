/** The result of a fault with its own columns: what clients saw, and the deviations from what is allowed. */
export interface Scene {
  readonly name: string;
  readonly seen: Readonly<Record<string, string>>;
  readonly wrongs: readonly string[];
}

/** Compares what was seen in each column with the words that are allowed in it. */
export function checkScene(
  name: string,
  seen: Readonly<Record<string, string>>,
  allowed: Readonly<Record<string, string | readonly string[]>>,
): Scene {
  const wrongs = Object.entries(allowed).flatMap(([column, words]) => {
    const all = typeof words === 'string' ? [words] : words;
    const is = seen[column] ?? 'nothing';
    return all.includes(is) ? [] : [`${name}: ${column}: ${is}, instead of ${all.join(' or ')}`];
  });
  return { name, seen, wrongs };
}
