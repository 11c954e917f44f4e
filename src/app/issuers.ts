import { claimPathText, createSubjectReader, namesOf, type SubjectReader } from '../access/claim-paths.ts';
import { introspectionComponent, TokenIntrospector } from '../access/introspection.ts';
import { createSigningKeys, type KeyDescription, type SigningKeys } from '../access/signing-keys.ts';
import { type Identity, subjectOfIssuer } from '../access/token-claims.ts';
import { type TokenIssuer, TokenIssuers } from '../access/token-issuers.ts';
import { TokenVerifier, type TokenVerifierOptions } from '../access/token-verifier.ts';
import { type IssuerConfig, listIssuers } from '../config/issuers.ts';
import type { Config } from '../config/schema.ts';
import type { Component, ComponentLog } from '../lib/component.ts';
import { networkOf } from '../server/in-flight.ts';

/** An issuer as the configuration makes it. */
interface ConfiguredIssuer extends TokenIssuer {
  /** What its tokens are verified by. */
  readonly rules: Omit<TokenVerifierOptions, 'keySource'>;
  /** Undefined: it has none. */
  readonly keys: SigningKeys | undefined;
  readonly signed: TokenVerifier | undefined;
  readonly introspected: TokenIntrospector | undefined;
}

/** Secrets of one issuer that are followed; undefined: it has none. */
export interface IssuerSecrets {
  /** `keys.secret` */
  readonly key: string | undefined;
  /** `introspection.clientSecret` */
  readonly client: string | undefined;
}

type IssuersConfig = Pick<Config, 'auth' | 'limits'> & Partial<Pick<Config, 'rollout'>>;

interface CreatedIssuers {
  readonly issuers: TokenIssuers<ConfiguredIssuer>;
  /** Keys and introspection, each with its name. */
  readonly components: readonly Component[];
  describe(): KeyDescription[];
  /** In the order of the configuration. */
  useSecrets(secrets: readonly IssuerSecrets[]): void;
}

/** Tokens that are remembered, of all issuers together. */
const maxRemembered = 10_000;

export function createIssuers(config: IssuersConfig, now: () => number, log: ComponentLog): CreatedIssuers {
  const configured = listIssuers(config.auth);
  const all = configured.map((issuer) => createIssuer(issuer, configured.length, config, now, log));
  const keys = all.flatMap((issuer) => issuer.keys ?? []);
  return {
    issuers: new TokenIssuers(all),
    components: [...keyComponents(all, keys), ...all.flatMap(introspectionComponents)],
    describe: () => keys.flatMap((one) => one.describe()),
    useSecrets(secrets) {
      for (const [index, { key, client }] of secrets.entries()) {
        all[index]?.keys?.useSecret(key);
        if (client !== undefined) all[index]?.introspected?.useSecret(client);
      }
    },
  };
}

function createIssuer(
  config: IssuerConfig,
  count: number,
  { limits, rollout }: IssuersConfig,
  now: () => number,
  log: ComponentLog,
): ConfiguredIssuer {
  const { name, issuer, introspection } = config;
  const rules = {
    ...{ name, issuer, algorithms: config.algorithms, audience: config.audience },
    ...{ subject: config.subject, scopes: config.scopes, clockToleranceMs: config.clockTolerance },
    maxTokenAgeMs: config.maxTokenAge === 'none' ? undefined : config.maxTokenAge,
    maxRememberedTokens: Math.ceil(maxRemembered / count),
    // A flood of new tokens leaves room for those that are remembered, and one issuer's for those of others.
    maxVerifying: Math.ceil(limits.inFlight / 2 / count),
    clientId: rollout === false ? undefined : rollout?.clientId,
    now,
    onVerified: createSubjectWatch(config, log),
  };
  const keys = config.keys && createSigningKeys({ ...config, keys: config.keys }, now, log);
  const introspected =
    introspection &&
    new TokenIntrospector({
      ...rules,
      url: introspection.url,
      credentials: { id: introspection.clientId, secret: introspection.clientSecret },
      timeoutMs: introspection.timeout,
      ttlMs: introspection.ttl,
      inactiveTtlMs: introspection.inactiveTtl,
      maxTokens: introspection.maxTokens,
      connections: introspection.connections,
      clientOf: networkOf,
      requireTokenType: introspection.requireTokenType,
      maxAsking: rules.maxVerifying,
      onAnswer: createAnswerLog(log),
    });
  const signed = keys && new TokenVerifier({ ...rules, keySource: keys.source });
  return { name, issuer, rules, keys, signed, introspected };
}

/** Their first keys are asked for together: one source that hangs keeps no other waiting. */
function keyComponents(all: readonly ConfiguredIssuer[], keys: readonly SigningKeys[]): Component[] {
  const isServing = () =>
    all.some(({ introspected, keys }) => introspected !== undefined || (keys?.source.status().keys ?? 0) > 0);
  return keys.map((own, index) => ({
    ...own,
    start: async () => {
      if (index === 0) await Promise.all(keys.map((one) => one.start?.()));
    },
    // Who has no keys yet sends its own users away, not those of others.
    health: () => ({ ...own.health(), isUnready: !isServing() }),
  }));
}

function introspectionComponents({ introspected }: ConfiguredIssuer): Component[] {
  return introspected === undefined ? [] : [introspectionComponent(introspected)];
}

/** Says when nobody answers, for another reason than before, and when somebody does again. */
function createAnswerLog(log: ComponentLog): (error: string | undefined) => void {
  let reported: string | undefined;
  return (error) => {
    if (error === reported) return;
    reported = error;
    if (error === undefined)
      log.info({ event: 'introspection-back' }, 'the introspection endpoint answers again');
    else
      log.error(
        { event: 'introspection-failed', reason: error },
        `the introspection endpoint gives no answer: ${error}`,
      );
  };
}

/** Whose a token of the shop's own answer is, by its claims, unverified; the same name as a verified one's. */
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
 * Shops put an object into `sub`, as JSON text. Taken whole it names a token rather than its user: it works, but each
 * refresh makes another user of the same one. Nobody sees that in a configuration; the first token shows it.
 */
function createSubjectWatch(
  { subject: setting }: IssuerConfig,
  log: ComponentLog,
): (identity: Pick<Identity, 'claimedSubject'>) => void {
  const paths = (typeof setting === 'string' ? [setting] : setting).map(namesOf);
  let isReported = paths.some(({ length }) => length > 1);
  return ({ claimedSubject }) => {
    if (isReported || !/^\s*\{/.test(claimedSubject)) return;
    isReported = true;
    const claim = claimPathText(setting);
    log.warn(
      { event: 'subject-is-json', setting: 'auth.subject' },
      `the claim ${claim} holds JSON: name the user in it, such as auth.subject: ${paths[0]?.[0]}.customer_reference`,
    );
  };
}
