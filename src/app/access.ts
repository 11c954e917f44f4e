import { createAuthenticate } from '../access/authenticate.ts';
import { claimPathText, namesOf } from '../access/claim-paths.ts';
import { createAccessTokenFilter, createAccessTokenMatcher } from '../access/filter.ts';
import type { KeySource } from '../access/key-source.ts';
import { createSigningKeys, type SigningKeys } from '../access/signing-keys.ts';
import { TokenVerifier, type TokenVerifierOptions } from '../access/token-verifier.ts';
import { WatchedList } from '../access/watched-list.ts';
import type { Config } from '../config/schema.ts';
import { gauge } from '../lib/component.ts';
import type { Filter } from '../proxy/filter.ts';
import type { Log } from '../telemetry/log.ts';
import { createMetadata } from './filters.ts';

interface Access {
  readonly list: WatchedList;
  readonly keys: SigningKeys;
  readonly accessToken: ReturnType<typeof createAccessTokenFilter> & Filter;
}

/** What is protected, and who may pass. `protectedList` is the text of the list, as it was checked with the configuration. */
export function createAccess(config: Config, protectedList: string, isWatched: boolean, log: Log): Access {
  const { auth } = config;
  const list = new WatchedList({
    file: config.protectedResources,
    text: protectedList,
    paths: config.request,
    isWatched,
    log,
  });
  const keys = createSigningKeys(auth, Date.now, log);
  const verifier = new TokenVerifier({
    ...verifierOptions(config, keys.source, Date.now),
    onVerified: createSubjectWatch(auth.subject, log),
  });
  const accessToken = createAccessTokenFilter(
    createAccessTokenMatcher(list.current),
    createAuthenticate({
      verifier,
      resourceMetadataUrl: createMetadata(config, list).url,
      forwarding: auth,
      cookieOrigins: auth.cookieOrigins,
    }),
  );
  return {
    list,
    keys,
    accessToken: {
      ...accessToken,
      metrics: [
        gauge(
          'shopward_remembered_tokens',
          'Verified tokens in memory.',
          'sum',
          () => verifier.status().remembered,
        ),
      ],
      close: () => verifier.close(),
    },
  };
}

/** What a configuration asks of access tokens; for whoever verifies one. */
export function verifierOptions(
  { auth, limits, rollout }: Pick<Config, 'auth' | 'limits'> & Partial<Pick<Config, 'rollout'>>,
  keySource: KeySource,
  now: () => number,
): TokenVerifierOptions {
  return {
    algorithms: auth.algorithms,
    keySource,
    subject: auth.subject,
    scopes: auth.scopes,
    clientId: rollout === false ? undefined : rollout?.clientId,
    issuer: auth.issuer,
    audience: auth.audience,
    clockToleranceMs: auth.clockTolerance,
    maxTokenAgeMs: auth.maxTokenAge === 'none' ? undefined : auth.maxTokenAge,
    // A flood of new tokens leaves room for those that are remembered.
    maxVerifying: Math.ceil(limits.inFlight / 2),
    now,
  };
}

/**
 * Shops put an object into `sub`, as JSON text. Taken whole it names a token rather than its user: it works, but each
 * refresh makes another user of the same one. Nobody sees that in a configuration; the first token shows it.
 */
function createSubjectWatch(
  setting: Config['auth']['subject'],
  log: Log,
): (identity: { readonly subject: string }) => void {
  const paths = (typeof setting === 'string' ? [setting] : setting).map(namesOf);
  let isReported = paths.some(({ length }) => length > 1);
  return ({ subject }) => {
    if (isReported || !/^\s*\{/.test(subject)) return;
    isReported = true;
    const claim = claimPathText(setting);
    log.warn(
      { event: 'subject-is-json', setting: 'auth.subject' },
      `the claim ${claim} holds JSON: name the user in it, such as auth.subject: ${paths[0]?.[0]}.customer_reference`,
    );
  };
}
