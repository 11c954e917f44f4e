/** Settings of the demo shop that a test may change while it runs. */
const defaults = {
  /** Milliseconds of delay before the shop works on a request. */
  latencyMs: 0,
  /** Further delay of `url-resolver`: a real shop starts its framework and reads for each. */
  resolverLatencyMs: 150,
  /** How many of the next requests fail with `failStatus`. Counts down. */
  failNext: 0,
  failStatus: 500,
  /** Whether a failing or cut request does its work first, as when a shop breaks after its commit. */
  failAfterWork: false,
  /** How many of the next answers are cut off by a connection reset. Counts down. */
  resetNext: 0,
  /** When the reset comes: before any byte, or after half of the body. */
  resetAt: 'mid-body' as 'before-answer' | 'mid-body',
  /** Whether the shop sends its own entity tags for carts and enforces `If-Match`, with the weaknesses of a real shop. */
  enforceTags: false,
  /** Methods for which `If-Match` is enforced; a real shop leaves out DELETE. */
  tagMethods: ['PATCH'],
  /** {base_url} of links; `Host` is ignored. Empty: the shop's own address. */
  domain: '',
};

export type ShopSettings = typeof defaults;

export function createSettings(change: Partial<ShopSettings>): ShopSettings {
  return { ...structuredClone(defaults), ...change };
}
