/**
 * Runs `ask` for every item, at most `limit` at once; results in the order of the items. A
 * request's time runs from when it is asked, so what waits must not have been asked yet.
 */
export async function eachAtOnce<T, R>(
  items: readonly T[],
  limit: number,
  ask: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const work = async () => {
    for (const [i, item] of entries) results[i] = await ask(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}
