/** Answers of the fast upstream: JSON of sizes that are usual for shops. */
const json = (bytes: number) => {
  const empty = JSON.stringify({ data: [{ type: 'carts', id: '1', attributes: { filler: '' } }] });
  return empty.replace('""', `"${'x'.repeat(Math.max(0, bytes - empty.length))}"`);
};

export const upstreamBodies: Readonly<Record<string, string>> = {
  '/small': json(400),
  '/large': json(100_000),
  '/orders/1': json(400),
  '/carts/1': json(400),
};
