/** Everything about the demo shop that can be changed while it runs, on the handle or at the control address. */
export type ShopSettings = {
  /** Milliseconds that every answer waits before the shop does any work. Default 0. */
  latencyMs: number;
  /** Milliseconds that `url-resolver` waits on top: a real shop boots and reads for each of them. Default 150. */
  resolverLatencyMs: number;
  /** How many of the next requests fail with `failStatus`. Counts down. Default 0. */
  failNext: number;
  /** Share of requests, 0 to 1, that fail with `failStatus`. Default 0. */
  failRate: number;
  /** Default 500. */
  failStatus: number;
  /** True: a failing or cut request has done its work before, as when a shop breaks after its commit. Default false. */
  failAfterWork: boolean;
  /** How many of the next answers are cut off by a connection reset. Counts down. Default 0. */
  resetNext: number;
  /** Where the reset hits: before any byte, or after half of the body. Default `mid-body`. */
  resetAt: 'before-answer' | 'mid-body';
  /** Status of the key set endpoint; it takes part in no other failure, so that none is used up by a background fetch. Default 200. */
  jwksStatus: number;
  /** The shop sends entity tags of its own for carts and enforces `If-Match`, weak points included. Default false. */
  enforceTags: boolean;
  /** Methods on which `If-Match` is enforced; a real shop forgets DELETE. Default `['PATCH']`. */
  tagMethods: string[];
  /** 406 without an Accept field, as a real shop does. Default true. */
  requireAccept: boolean;
  /** JSON escaped as PHP does (`\/`, `\u0026`): equal in meaning, not in bytes. Default false. */
  phpJson: boolean;
  /** {base_url} of links; the Host field is ignored. Default: the shop's own address. */
  domain: string;
  /** Who calls when no readable bearer token says so. Default `DE--21`. */
  defaultCustomer: string;
  /** Largest request body in bytes, 413 above. Default 2 MiB. */
  maxBodyBytes: number;
  /** Lifetime of the access tokens that are issued from now on. Default 28800 (8 hours). */
  accessTokenLifetimeSeconds: number;
};

export type ShopOptions = Partial<ShopSettings> & {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 takes a free port. Default 0. */
  readonly port?: number;
  /** Port of the control address, always on loopback; 0 takes a free one, `false` leaves it out. Default 0. */
  readonly controlPort?: number | false;
  /** Idle time of a kept-alive connection in milliseconds. Default 75 s, as nginx in front of a real shop. */
  readonly keepAliveTimeoutMs?: number;
  /** Default 2628000 (1 month). */
  readonly refreshTokenLifetimeSeconds?: number;
  /** How many received requests are remembered; counts go on. Default 10000. */
  readonly rememberedRequests?: number;
};

const defaults: ShopSettings = {
  latencyMs: 0,
  resolverLatencyMs: 150,
  failNext: 0,
  failRate: 0,
  failStatus: 500,
  failAfterWork: false,
  resetNext: 0,
  resetAt: 'mid-body',
  jwksStatus: 200,
  enforceTags: false,
  tagMethods: ['PATCH'],
  requireAccept: true,
  phpJson: false,
  domain: '',
  defaultCustomer: 'DE--21',
  maxBodyBytes: 2 * 1024 * 1024,
  accessTokenLifetimeSeconds: 28_800,
};

/** Returns the problems of a change; an empty list means that it was applied as a whole. */
export function changeSettings(settings: ShopSettings, change: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(change)) {
    if (!Object.hasOwn(defaults, name)) {
      problems.push(`${name}: unknown setting`);
      continue;
    }
    const problem = problemOf(name as keyof ShopSettings, value);
    if (problem !== undefined) problems.push(`${name}: ${problem}`);
  }
  if (problems.length === 0) Object.assign(settings, change);
  return problems;
}

function problemOf(name: keyof ShopSettings, value: unknown): string | undefined {
  if (name === 'resetAt')
    return value === 'before-answer' || value === 'mid-body' ? undefined : 'before-answer or mid-body';
  if (name === 'tagMethods') {
    const isList = Array.isArray(value) && value.every((method) => typeof method === 'string');
    return isList ? undefined : 'a list of methods';
  }
  if (typeof value !== typeof defaults[name]) return `expected a ${typeof defaults[name]}`;
  if (typeof value === 'number' && !(Number.isFinite(value) && value >= 0))
    return 'expected a number of at least 0';
  if ((name === 'failStatus' || name === 'jwksStatus') && !(Number(value) >= 200 && Number(value) <= 599)) {
    return 'expected a status of 200 to 599';
  }
  return undefined;
}

export function createSettings(options: ShopOptions): ShopSettings {
  const settings: ShopSettings = { ...defaults, tagMethods: [...defaults.tagMethods] };
  const names = Object.keys(defaults).filter((name) => options[name as keyof ShopSettings] !== undefined);
  const change = Object.fromEntries(names.map((name) => [name, options[name as keyof ShopSettings]]));
  const problems = changeSettings(settings, change);
  if (problems.length > 0) throw new TypeError(problems.join('; '));
  return settings;
}
