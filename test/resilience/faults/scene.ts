/** A fault that has columns of its own: what was seen of it, and what should have been otherwise. */
export interface Scene {
  readonly name: string;
  readonly seen: Readonly<Record<string, string>>;
  readonly wrongs: readonly string[];
}

/** Holds what was seen against what may be seen; several words: any of them. */
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
