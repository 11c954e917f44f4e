import type { SettingProblem } from './issues.ts';
import type { SettingPath } from './json-schema.ts';
import type { Config } from './schema.ts';
import { isLoopback } from './values.ts';

type Auth = Config['auth'];

/** An issuer of access tokens, with all settings for the verification of its tokens. */
export interface IssuerConfig
  extends Pick<
    Auth,
    | 'keys'
    | 'introspection'
    | 'issuer'
    | 'algorithms'
    | 'audience'
    | 'clockTolerance'
    | 'maxTokenAge'
    | 'tokenType'
    | 'subject'
    | 'scopes'
    | 'proof'
  > {
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
    proof: common.proof,
  }));
}

/** Least bytes of a secret: the length of the hash (RFC 7518 section 3.2). */
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 };

/** Whether opaque tokens are accepted: some issuer has introspection. */
export function takesOpaqueTokens(auth: Auth): boolean {
  return listIssuers(auth).some(({ introspection }) => introspection !== undefined);
}

/** Contradictions in the settings of an issuer, or between issuers. */
export function issuerProblems(auth: Auth): SettingProblem[] {
  const issuers = listIssuers(auth);
  return [
    ...severalProblems(auth, issuers),
    ...forwardProblems(auth, issuers),
    ...issuers.flatMap((issuer) => [...sourceProblems(issuer), ...keyProblems(issuer)]),
  ];
}

/** Contradictions between issuers: every token must belong to exactly one. */
function severalProblems(auth: Auth, issuers: readonly IssuerConfig[]): SettingProblem[] {
  if (auth.issuers === undefined) return [];
  const problems: SettingProblem[] = [];
  for (const key of ['keys', 'introspection', 'issuer'] as const) {
    if (auth[key] === undefined) continue;
    problems.push({
      path: ['auth', key],
      text: 'must not be set together with auth.issuers: move it into an entry',
    });
  }
  const seen = new Set<string | undefined>();
  let opaque: IssuerConfig | undefined;
  for (const one of issuers) {
    for (const key of ['issuer', 'name'] as const) {
      const known = `${key} ${one[key]}`;
      if (seen.has(known))
        problems.push({ path: [...one.path, key], text: 'is the same as in an earlier entry' });
      seen.add(known);
    }
    if (one.introspection !== undefined && opaque !== undefined) {
      const text = `is already in ${opaque.name}: opaque tokens name no issuer, so only one entry may have introspection`;
      problems.push({ path: [...one.path, 'introspection'], text });
    }
    if (one.introspection !== undefined) opaque ??= one;
  }
  return problems;
}

/** With several issuers, `sub` alone does not identify a user: one issuer's user could pass for another's at the shop. */
function forwardProblems({ forward }: Auth, issuers: readonly IssuerConfig[]): SettingProblem[] {
  if (issuers.length < 2 || forward.subject === undefined || forward.issuer !== undefined) return [];
  const text =
    'is required if there are several issuers: two issuers may use one subject for different users';
  return [{ path: ['auth', 'forward', 'issuer'], text }];
}

function sourceProblems({ path, keys, introspection, issuer }: IssuerConfig): SettingProblem[] {
  const problems: SettingProblem[] = [];
  if (path.length > 1 && keys === undefined && introspection === undefined)
    problems.push({ path: [...path, 'keys'], text: 'is required unless introspection is set' });
  if (introspection !== undefined)
    problems.push(...urlWarnings(introspection.url, [...path, 'introspection', 'url'], 'asked'));
  if (keys === undefined || !('discover' in keys)) return problems;
  const [, scheme] = /^(https?):\/\/[^\s/@?#]+(?:\/[^\s?#]*)?$/i.exec(issuer ?? '') ?? [];
  if (scheme !== undefined && URL.canParse(issuer ?? '')) {
    problems.push(...urlWarnings(issuer ?? '', [...path, 'issuer'], 'asked for its keys'));
  } else {
    const text = `needs ${path.join('.').replace(/\.(\d+)/, '[$1]')}.issuer to be an https:// URL without query and fragment (RFC 8414 section 2)`;
    problems.push({ path: [...path, 'keys', 'discover'], text });
  }
  return problems;
}

/** Keys and algorithms must be of one kind: a public key must never be used as a secret. */
function keyProblems({ path: at, algorithms, keys }: IssuerConfig): SettingProblem[] {
  if (keys === undefined) return [];
  const isSymmetric = 'secret' in keys;
  const problems: SettingProblem[] = [];
  for (const [index, algorithm] of algorithms.entries()) {
    const path = [...at, 'algorithms', index];
    const bytes = secretBytes[algorithm];
    if ((bytes !== undefined) !== isSymmetric) {
      problems.push({
        path,
        text: isSymmetric ? `${algorithm} does not work with keys.secret` : `${algorithm} needs keys.secret`,
      });
    } else if (bytes !== undefined && 'secret' in keys && Buffer.byteLength(keys.secret) < bytes) {
      const text = `must have at least ${bytes} bytes for ${algorithm} (RFC 7518 section 3.2)`;
      problems.push({ path: [...at, 'keys', 'secret'], text });
    }
  }
  // If a public key were the HMAC secret, anybody could sign tokens.
  if ('secret' in keys && keys.secret.includes('-----BEGIN ')) {
    const text = 'is PEM, not a secret; name public keys in auth.keys.files';
    problems.push({ path: [...at, 'keys', 'secret'], text });
  }
  if ('jwks' in keys) problems.push(...urlWarnings(keys.jwks, [...at, 'keys', 'jwks'], 'fetched'));
  return problems;
}

/** Without TLS an attacker on the network can replace the provider's answers. */
function urlWarnings(url: string, path: SettingPath, what: string): SettingProblem[] {
  const [, scheme = '', authority = ''] = /^(https?):\/\/(\[[^\]]*\]|[^/:?]*)/i.exec(url) ?? [];
  if (scheme.toLowerCase() === 'https' || isLoopback(authority.replace(/^\[|\]$/g, ''))) return [];
  const text = `is ${what} without TLS: an attacker on the network can ${what === 'asked' ? 'forge the answers, and read tokens and clientSecret' : 'replace the keys, and so sign tokens'}`;
  return [{ path, text, severity: 'warning' }];
}
