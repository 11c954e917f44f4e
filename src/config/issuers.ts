import { mistake, type SettingProblem, warning } from './issues.ts';
import type { SettingPath } from './json-schema.ts';
import type { Config } from './schema.ts';
import { isLoopback } from './values.ts';

type Auth = Config['auth'];

/** An issuer of access tokens, with all settings for the verification of its tokens. */
export interface IssuerConfig extends Omit<Auth, 'issuers'> {
  /** The path of the issuer in the configuration. */
  readonly path: SettingPath;
  /** Undefined for a single issuer, without `auth.issuers`. */
  readonly name: string | undefined;
}

/** All issuers of `auth`; without `auth.issuers` a list of one. */
export function listIssuers(auth: Auth): readonly IssuerConfig[] {
  const { issuers, ...common } = auth;
  if (issuers === undefined) return [{ ...common, path: ['auth'], name: undefined }];
  return issuers.map((own, index) => ({
    ...common,
    path: ['auth', 'issuers', index],
    name: own.name ?? `issuer-${index + 1}`,
    issuer: own.issuer,
    keys: own.keys,
    introspection: own.introspection,
    algorithms: own.algorithms ?? common.algorithms,
    audience: own.audience ?? common.audience,
    clockTolerance: own.clockTolerance ?? common.clockTolerance,
    maxTokenAge: own.maxTokenAge ?? common.maxTokenAge,
    tokenType: own.tokenType ?? common.tokenType,
    subject: own.subject ?? common.subject,
    scopes: own.scopes ?? common.scopes,
  }));
}

/** Least bytes of a secret: the length of the hash (RFC 7518 section 3.2). */
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 };

/** Whether opaque tokens are accepted: some issuer has introspection. */
export function takesOpaqueTokens(auth: Auth): boolean {
  return listIssuers(auth).some(({ introspection }) => introspection !== undefined);
}

/** Contradictions in the settings of an issuer, or between issuers. */
export function* issuerProblems(auth: Auth): Generator<SettingProblem> {
  const issuers = listIssuers(auth);
  yield* severalProblems(auth, issuers);
  for (const issuer of issuers) {
    yield* sourceProblems(issuer);
    yield* keyProblems(issuer);
  }
}

/** Contradictions between issuers: every token must belong to exactly one. */
function* severalProblems(auth: Auth, issuers: readonly IssuerConfig[]): Generator<SettingProblem> {
  if (auth.issuers === undefined) return;
  for (const key of ['keys', 'introspection', 'issuer'] as const) {
    const text = 'must not be set together with auth.issuers: move it into an entry';
    if (auth[key] !== undefined) yield mistake(['auth', key], text);
  }
  const seen = new Set<string>();
  let opaque: IssuerConfig | undefined;
  for (const one of issuers) {
    for (const key of ['issuer', 'name'] as const) {
      const known = `${key} ${one[key]}`;
      if (seen.has(known)) yield mistake([...one.path, key], 'is the same as in an earlier entry');
      seen.add(known);
    }
    if (one.introspection === undefined) continue;
    const text = `is already in ${opaque?.name}: opaque tokens name no issuer, so only one entry may have introspection`;
    if (opaque !== undefined) yield mistake([...one.path, 'introspection'], text);
    opaque ??= one;
  }
  // With several issuers, `sub` alone does not identify a user: one issuer's user could pass for another's at the shop.
  const { subject, issuer } = auth.forward;
  if (issuers.length < 2 || subject === undefined || issuer !== undefined) return;
  const text =
    'is required if there are several issuers: two issuers may use one subject for different users';
  yield mistake('auth.forward.issuer', text);
}

function* sourceProblems({
  path,
  keys,
  introspection,
  issuer = '',
}: IssuerConfig): Generator<SettingProblem> {
  if (path.length > 1 && keys === undefined && introspection === undefined)
    yield mistake([...path, 'keys'], 'is required unless introspection is set');
  if (introspection !== undefined)
    yield* urlWarnings(introspection.url, [...path, 'introspection', 'url'], 'asked');
  if (keys === undefined || !('discover' in keys)) return;
  if (/^https?:\/\/[^\s/@?#]+(?:\/[^\s?#]*)?$/i.test(issuer) && URL.canParse(issuer)) {
    yield* urlWarnings(issuer, [...path, 'issuer'], 'asked for its keys');
  } else {
    const text = `needs ${path.join('.').replace(/\.(\d+)/, '[$1]')}.issuer to be an https:// URL without query and fragment (RFC 8414 section 2)`;
    yield mistake([...path, 'keys', 'discover'], text);
  }
}

/** Keys and algorithms must be of one kind: a public key must never be used as a secret. */
function* keyProblems({ path, algorithms, keys }: IssuerConfig): Generator<SettingProblem> {
  if (keys === undefined) return;
  const secret = 'secret' in keys ? keys.secret : undefined;
  for (const [index, algorithm] of algorithms.entries()) {
    const bytes = secretBytes[algorithm];
    const at = [...path, 'algorithms', index];
    if (bytes === undefined) {
      if (secret !== undefined) yield mistake(at, `${algorithm} does not work with keys.secret`);
    } else if (secret === undefined) {
      yield mistake(at, `${algorithm} needs keys.secret`);
    } else if (Buffer.byteLength(secret) < bytes) {
      const text = `must have at least ${bytes} bytes for ${algorithm} (RFC 7518 section 3.2)`;
      yield mistake([...path, 'keys', 'secret'], text);
    }
  }
  // If a public key were the HMAC secret, anybody could sign tokens.
  if (secret?.includes('-----BEGIN '))
    yield mistake([...path, 'keys', 'secret'], 'is PEM, not a secret; name public keys in auth.keys.files');
  if ('jwks' in keys) yield* urlWarnings(keys.jwks, [...path, 'keys', 'jwks'], 'fetched');
}

/** Without TLS an attacker on the network can replace the provider's answers. */
function* urlWarnings(url: string, path: SettingPath, what: string): Generator<SettingProblem> {
  const [, scheme = '', authority = ''] = /^(https?):\/\/(\[[^\]]*\]|[^/:?]*)/i.exec(url) ?? [];
  if (scheme.toLowerCase() === 'https' || isLoopback(authority.replace(/^\[|\]$/g, ''))) return;
  const harm =
    what === 'asked'
      ? 'forge the answers, and read tokens and clientSecret'
      : 'replace the keys, and so sign tokens';
  yield warning(path, `is ${what} without TLS: an attacker on the network can ${harm}`);
}
