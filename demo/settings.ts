/** Everything about the demo shop that can be changed while it runs, on the handle or at the control address. */
const defaults = {
  /** Milliseconds that every answer waits before the shop does any work. */
  latencyMs: 0,
  /** Milliseconds that `url-resolver` waits on top: a real shop boots and reads for each of them. */
  resolverLatencyMs: 150,
  /** How many of the next requests fail with `failStatus`. Counts down. */
  failNext: 0,
  /** Share of requests, 0 to 1, that fail with `failStatus`. */
  failRate: 0,
  failStatus: 500,
  /** True: a failing or cut request has done its work before, as when a shop breaks after its commit. */
  failAfterWork: false,
  /** How many of the next answers are cut off by a connection reset. Counts down. */
  resetNext: 0,
  /** Where the reset hits: before any byte, or after half of the body. */
  resetAt: 'mid-body' as 'before-answer' | 'mid-body',
  /** Status of the key set endpoint; it takes part in no other failure, so that none is used up by a background fetch. */
  jwksStatus: 200,
  /** The shop sends entity tags of its own for carts and enforces `If-Match`, weak points included. */
  enforceTags: false,
  /** Methods on which `If-Match` is enforced; a real shop forgets DELETE. */
  tagMethods: ['PATCH'],
  /** JSON escaped as PHP does (`\/`, `\u0026`): equal in meaning, not in bytes. */
  phpJson: false,
  /** {base_url} of links; the Host field is ignored. Empty: the shop's own address. */
  domain: '',
  /** Lifetime of the access tokens that are issued from now on; 8 hours. */
  accessTokenLifetimeSeconds: 28_800,
};

export type ShopSettings = typeof defaults;

/** What a value must be, where its type does not say enough: by the setting's name, its ending, or its type. */
const checks: Readonly<Record<string, readonly [holds: (value: unknown) => boolean, expected: string]>> = {
  resetAt: [(value) => value === 'before-answer' || value === 'mid-body', 'before-answer or mid-body'],
  tagMethods: [
    (value) => Array.isArray(value) && value.every((method) => typeof method === 'string'),
    'a list of methods',
  ],
  status: [(value) => Number(value) >= 200 && Number(value) <= 599, 'expected a status of 200 to 599'],
  number: [(value) => Number.isFinite(value) && Number(value) >= 0, 'expected a number of at least 0'],
};

function problemOf(name: string, value: unknown): string | undefined {
  if (!Object.hasOwn(defaults, name)) return 'unknown setting';
  const type = typeof defaults[name as keyof ShopSettings];
  if (type !== 'object' && typeof value !== type) return `expected a ${type}`;
  const [holds, expected] = checks[name] ?? checks[name.endsWith('Status') ? 'status' : type] ?? [];
  return holds === undefined || holds(value) ? undefined : expected;
}

/** Returns the problems of a change; an empty list means that it was applied as a whole. */
export function changeSettings(settings: ShopSettings, change: Readonly<Record<string, unknown>>): string[] {
  const checked = Object.entries(change).map(([name, value]) => [name, problemOf(name, value)] as const);
  const problems = checked.flatMap(([name, problem]) => (problem === undefined ? [] : `${name}: ${problem}`));
  if (problems.length === 0) Object.assign(settings, change);
  return problems;
}

export function createSettings(change: Partial<ShopSettings>): ShopSettings {
  const settings = structuredClone(defaults);
  const problems = changeSettings(settings, change);
  if (problems.length > 0) throw new TypeError(problems.join('; '));
  return settings;
}
