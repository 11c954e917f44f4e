import { claimPathText, createSubjectReader, namesOf, type SubjectReader } from '../access/claim-paths.ts';
import { introspectionComponent, TokenIntrospector } from '../access/introspection.ts';
import { createOutageLog } from '../access/provider-fetch.ts';
import { createSigningKeys, type KeyDescription, type SigningKeys } from '../access/signing-keys.ts';
import { subjectOfIssuer, type TokenIdentity } from '../access/token-claims.ts';
import { TokenIssuers } from '../access/token-issuers.ts';
import { TokenVerifier, type TokenVerifierOptions } from '../access/token-verifier.ts';
import { type IssuerConfig, listIssuers } from '../config/issuers.ts';
import type { Config } from '../config/schema.ts';
import type { FieldList } from '../http/field-list.ts';
import type { Component, ComponentLog } from '../lib/component.ts';

type ConfiguredIssuer = ReturnType<typeof createIssuer>;

/** The secrets of one issuer that can change without a restart; undefined: the issuer has no such secret. */
export interface IssuerSecrets {
  /** `keys.secret` */
  readonly key: string | undefined;
  /** `introspection.clientSecret` */
  readonly client: string | undefined;
}

/** Milliseconds for which the answer for an inactive token is kept. */
const inactiveTtlMs = 5_000;
/** Maximum number of answers of each kind that are kept. */
const maxAnswers = 10_000;
/** Maximum number of verified tokens that are remembered, of all issuers together. */
const maxRemembered = 10_000;

type OnDate = (fields: FieldList, askedMs: number) => void;

/** `onDate` gets the response fields of a key set, and the time of the request. */
export function createIssuers(
  { auth, limits }: Pick<Config, 'auth' | 'limits'>,
  log: ComponentLog,
  onDate?: OnDate,
) {
  const configured = listIssuers(auth);
  // At most half of the requests in flight verify new tokens, so that a flood of these leaves room for remembered tokens.
  const bounds = {
    maxRememberedTokens: Math.ceil(maxRemembered / configured.length),
    maxVerifying: Math.ceil(limits.inFlight / 2 / configured.length),
  };
  const all = configured.map((issuer) => createIssuer(issuer, bounds, log, onDate));
  const keys = all.flatMap((issuer) => issuer.keys ?? []);
  return {
    issuers: new TokenIssuers(all),
    /** Keys and introspection, each with its name. */
    components: [
      ...keyComponents(all, keys),
      ...all.flatMap(({ introspected }) => (introspected ? introspectionComponent(introspected) : [])),
    ],
    describe: (): KeyDescription[] => keys.flatMap((one) => one.describe()),
    /** In the order of the configuration. */
    useSecrets(secrets: readonly IssuerSecrets[]) {
      for (const [index, { key, client }] of secrets.entries()) {
        all[index]?.keys?.useSecret(key);
        if (client !== undefined) all[index]?.introspected?.useSecret(client);
      }
    },
  };
}

function createIssuer(
  config: IssuerConfig,
  bounds: Required<Pick<TokenVerifierOptions, 'maxRememberedTokens' | 'maxVerifying'>>,
  log: ComponentLog,
  onDate: OnDate | undefined,
) {
  const { name, issuer, introspection } = config;
  const rules = {
    ...{ name, issuer, algorithms: config.algorithms, audience: config.audience },
    ...{ tokenType: config.tokenType, proof: config.proof, subject: config.subject, scopes: config.scopes },
    clockToleranceMs: config.clockTolerance,
    maxTokenAgeMs: config.maxTokenAge === 'none' ? undefined : config.maxTokenAge,
    ...bounds,
    now: Date.now,
    onVerified: createSubjectWatch(config, log),
  };
  const keys = config.keys && createSigningKeys({ ...config, keys: config.keys, onDate }, Date.now, log);
  const introspected =
    introspection &&
    new TokenIntrospector({
      ...rules,
      url: introspection.url,
      credentials: { id: introspection.clientId, secret: introspection.clientSecret },
      timeoutMs: introspection.timeout,
      ttlMs: introspection.ttl,
      inactiveTtlMs,
      maxTokens: maxAnswers,
      connections: introspection.connections,
      requireTokenType: introspection.requireTokenType,
      maxAsking: bounds.maxVerifying,
      onAnswer: createOutageLog(
        log,
        ['introspection-failed', 'introspection gives no usable answer'],
        ['introspection-back', 'the introspection endpoint answers again'],
      ),
    });
  const signed = keys && new TokenVerifier({ ...rules, keySource: keys.source });
  return { name, issuer, rules, keys, signed, introspected };
}

/** The first keys of all issuers are loaded together, so that a source that hangs delays no other. */
function keyComponents(all: readonly ConfiguredIssuer[], keys: readonly SigningKeys[]): Component[] {
  const isServing = () =>
    all.some(({ introspected, keys }) => introspected !== undefined || (keys?.source.status().keys ?? 0) > 0);
  return keys.map((own, index) => ({
    ...own,
    start: async () => {
      if (index === 0) await Promise.all(keys.map((one) => one.start?.()));
    },
    // An issuer without keys refuses only its own users; the process is unready if no issuer can verify a token.
    health: () => ({ ...own.health(), isUnready: !isServing() }),
  }));
}

/**
 * Reads the subject from the unverified claims of a token in the shop's own response, by the same rules as from a verified
 * one, so that both give the same name.
 */
export function createShopSubject(auth: Config['auth']): SubjectReader {
  const issuers = listIssuers(auth).map((one) => ({ ...one, read: createSubjectReader(one.subject) }));
  const [only] = issuers;
  return (claims) => {
    const issuer = issuers.length === 1 ? only : issuers.find((one) => one.issuer === claims.iss);
    const claimed = issuer?.read(claims);
    return claimed === undefined ? undefined : subjectOfIssuer(issuer?.name, claimed);
  };
}

/**
 * Warns when the subject claim is JSON, which some shops put into `sub`. This text differs in each token, so after each
 * refresh the same user would look like a new one. Checked until it was reported once.
 */
function createSubjectWatch(
  { subject: setting }: IssuerConfig,
  log: ComponentLog,
): (identity: Pick<TokenIdentity, 'claimedSubject'>) => void {
  const paths = (typeof setting === 'string' ? [setting] : setting).map(namesOf);
  let isReported = paths.some(({ length }) => length > 1);
  return ({ claimedSubject }) => {
    if (isReported || !/^\s*\{/.test(claimedSubject)) return;
    isReported = true;
    const claim = claimPathText(setting);
    log.warn(
      { event: 'subject-is-json', setting: 'auth.subject' },
      `the claim ${claim} is JSON: name the user in it, such as auth.subject: ${paths[0]?.[0]}.customer_reference`,
    );
  };
}
