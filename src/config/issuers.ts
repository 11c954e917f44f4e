import type { SettingProblem } from './issues.ts';
import type { SettingPath } from './json-schema.ts';
import type { Config } from './schema.ts';
import { isLinkLocal, isLoopback, linkLocalText } from './values.ts';

type Auth = Config['auth'];

/** Who issues access tokens, with all settings that its tokens are verified by. */
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
    | 'subject'
    | 'scopes'
  > {
  /** Where it stands. */
  readonly path: SettingPath;
  /** Undefined: it is the only one. */
  readonly name: string | undefined;
}

/** The one reading of `auth`: without `auth.issuers` it is a list of one. */
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
    subject: own.subject ?? common.subject,
    scopes: own.scopes ?? common.scopes,
  }));
}

/** Bytes of a secret, at least as many as the hash has (RFC 7518 section 3.2). */
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 };

/** Whether a token may have another form than that of a JSON Web Token: somebody can be asked about it. */
export function takesOpaqueTokens(auth: Auth): boolean {
  return listIssuers(auth).some(({ introspection }) => introspection !== undefined);
}

/** What issuers must not contradict, each in itself and all together. */
export function issuerProblems(auth: Auth): SettingProblem[] {
  const issuers = listIssuers(auth);
  return [
    ...severalProblems(auth, issuers),
    ...forwardProblems(auth, issuers),
    ...issuers.flatMap((issuer) => [...sourceProblems(issuer), ...keyProblems(issuer)]),
  ];
}

/** What no entry can say of itself: which one a token is of must never be a matter of opinion. */
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
      const text = `must be in one entry only, and ${opaque.name} has it: a token without an issuer would be sent to both`;
      problems.push({ path: [...one.path, 'introspection'], text });
    }
    if (one.introspection !== undefined) opaque ??= one;
  }
  return problems;
}

/** Each issuer has its own users: by `sub` alone one of them could pass for another's at the shop. */
function forwardProblems({ forward }: Auth, issuers: readonly IssuerConfig[]): SettingProblem[] {
  if (issuers.length < 2 || forward.subject === undefined || forward.issuer !== undefined) return [];
  const text =
    'is required beside auth.forward.subject where there are several issuers: two of them may call different users the same';
  return [{ path: ['auth', 'forward', 'issuer'], text }];
}

function sourceProblems({ path, keys, introspection, issuer }: IssuerConfig): SettingProblem[] {
  const problems: SettingProblem[] = [];
  if (path.length > 1 && keys === undefined && introspection === undefined)
    problems.push({ path: [...path, 'keys'], text: 'is required, or introspection is' });
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

/** Keys and algorithms must be of one kind: a public key must never be taken for a secret. */
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
  // A public key as HMAC secret is known to everybody.
  if ('secret' in keys && keys.secret.includes('-----BEGIN ')) {
    const text = 'is PEM, not a secret; name public keys in auth.keys.files';
    problems.push({ path: [...at, 'keys', 'secret'], text });
  }
  if ('jwks' in keys) problems.push(...urlWarnings(keys.jwks, [...at, 'keys', 'jwks'], 'fetched'));
  return problems;
}

/** Of an identity provider: who can change what it says decides who gets in. */
function urlWarnings(url: string, path: SettingPath, what: string): SettingProblem[] {
  const [, scheme = '', authority = ''] = /^(https?):\/\/(\[[^\]]*\]|[^/:?]*)/i.exec(url) ?? [];
  const host = authority.replace(/^\[|\]$/g, '');
  const problems: SettingProblem[] = [];
  if (scheme.toLowerCase() !== 'https' && !isLoopback(host)) {
    const text = `is ${what} without TLS: whoever can change that traffic can ${what === 'asked' ? 'let anybody in, and reads tokens and clientSecret' : 'sign tokens'}`;
    problems.push({ path, text, severity: 'warning' });
  }
  if (isLinkLocal(host)) problems.push({ path, text: linkLocalText, severity: 'warning' });
  return problems;
}
