/** What can be changed of the demo shop while it runs, on its handle. */
const defaults = {
  /** Milliseconds that every answer waits before the shop does any work. */
  latencyMs: 0,
  /** Milliseconds that `url-resolver` waits on top: a real shop boots and reads for each of them. */
  resolverLatencyMs: 150,
  /** How many of the next requests fail with `failStatus`. Counts down. */
  failNext: 0,
  failStatus: 500,
  /** True: a failing or cut request has done its work before, as when a shop breaks after its commit. */
  failAfterWork: false,
  /** How many of the next answers are cut off by a connection reset. Counts down. */
  resetNext: 0,
  /** Where the reset hits: before any byte, or after half of the body. */
  resetAt: 'mid-body' as 'before-answer' | 'mid-body',
  /** The shop sends entity tags of its own for carts and enforces `If-Match`, weak points included. */
  enforceTags: false,
  /** Methods on which `If-Match` is enforced; a real shop forgets DELETE. */
  tagMethods: ['PATCH'],
  /** {base_url} of links; the Host field is ignored. Empty: the shop's own address. */
  domain: '',
};

export type ShopSettings = typeof defaults;

export function createSettings(change: Partial<ShopSettings>): ShopSettings {
  return { ...structuredClone(defaults), ...change };
}
