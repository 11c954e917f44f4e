import { createAuthenticate } from '../access/authenticate.ts';
import { createAccessTokenFilter, createAccessTokenMatcher } from '../access/filter.ts';
import { TokenVerifier } from '../access/token-verifier.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../telemetry/log.ts';
import { createMetadata } from './endpoints.ts';
import { createWatchedKeys, type WatchedKeys } from './watched-keys.ts';
import { type WatchedList, watchProtectedList } from './watched-list.ts';

export interface Protection {
  readonly list: WatchedList;
  readonly keys: WatchedKeys;
  readonly verifier: TokenVerifier;
  readonly accessToken: ReturnType<typeof createAccessTokenFilter>;
  close(): void;
}

export interface ProtectionInput {
  readonly config: Config;
  /** Text of the protected list, as it was checked with the configuration. */
  readonly protectedList: string;
  /** Whether this process watches the file of the list. */
  readonly isWatched: boolean;
  readonly log: Log;
  readonly now: () => number;
}

/** What is protected, and who may pass. */
export function createProtection({
  config,
  protectedList,
  isWatched,
  log,
  now,
}: ProtectionInput): Protection {
  const { auth, limits } = config;
  const list = watchProtectedList({
    file: config.protectedResources,
    text: protectedList,
    paths: config.request,
    isWatched,
    log,
  });
  const keys = createWatchedKeys(auth, now, log);
  const verifier = new TokenVerifier({
    algorithms: auth.algorithms,
    keySource: keys.source,
    subject: auth.subject,
    issuer: auth.issuer,
    audience: auth.audience,
    clockToleranceMs: auth.clockTolerance,
    maxTokenAgeMs: auth.maxTokenAge === 'none' ? undefined : auth.maxTokenAge,
    // A flood of new tokens leaves room for those that are remembered.
    maxVerifying: Math.ceil(limits.inFlight / 2),
    now,
    onVerified: createSubjectWatch(auth.subject, log),
  });
  return {
    list,
    keys,
    verifier,
    accessToken: createAccessTokenFilter(
      createAccessTokenMatcher(list.current),
      createAuthenticate({ verifier, resourceMetadataUrl: createMetadata(config, list).url }),
    ),
    close() {
      list.close();
      verifier.close();
      keys.close();
    },
  };
}

/**
 * Shops put an object into `sub`, as JSON text. Taken whole it names a token rather than its user: it works, but each
 * refresh makes another user of the same one. Nobody sees that in a configuration; the first token shows it.
 */
function createSubjectWatch(path: string, log: Log): (identity: { readonly subject: string }) => void {
  let isReported = path.includes('.');
  return ({ subject }) => {
    if (isReported || !/^\s*\{/.test(subject)) return;
    isReported = true;
    log.warn(
      { event: 'subject-is-json', setting: 'auth.subject' },
      `the claim ${path} holds JSON: name the user in it, such as auth.subject: ${path}.customer_reference`,
    );
  };
}
