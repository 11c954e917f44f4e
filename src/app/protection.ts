import { readFile } from 'node:fs/promises';
import { createAuthenticate } from '../access/authenticate.ts';
import { FileKeySource } from '../access/file-key-source.ts';
import { createAccessTokenFilter, createAccessTokenMatcher } from '../access/filter.ts';
import { JwksKeySource } from '../access/jwks-key-source.ts';
import type { KeySource } from '../access/key-source.ts';
import { SecretKeySource } from '../access/secret-key-source.ts';
import { TokenVerifier } from '../access/token-verifier.ts';
import type { Config } from '../config/schema.ts';
import { type Component, counter, gauge, type MetricSpec } from '../lib/component.ts';
import { FileWatch } from '../lib/watched-file.ts';
import type { Log } from '../telemetry/log.ts';
import { createMetadata } from './endpoints.ts';
import { keyFaultText } from './key-fault-text.ts';
import { listMetrics, type WatchedList, watchProtectedList } from './watched-list.ts';

export interface Protection extends Component {
  readonly list: WatchedList;
  readonly keys: WatchedKeys;
  readonly accessToken: ReturnType<typeof createAccessTokenFilter>;
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
    name: 'access',
    list,
    keys,
    accessToken: createAccessTokenFilter(
      createAccessTokenMatcher(list.current),
      createAuthenticate({ verifier, resourceMetadataUrl: createMetadata(config, list).url }),
    ),
    metrics: [...listMetrics(list), ...keyMetrics(keys.source, verifier)],
    // Keys that cannot be had yet are no reason to stay down: protected requests get 503 until they come.
    start: keys.start,
    async reload() {
      list.reload();
      await keys.reload();
    },
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

/** The worker that is worst off is shown. */
function keyMetrics(keys: KeySource, verifier: TokenVerifier): MetricSpec[] {
  return [
    gauge('shopward_keys', 'Usable verification keys.', 'min', () => keys.status().keys),
    gauge(
      'shopward_keys_last_load_success',
      'Whether the last attempt to load the verification keys succeeded.',
      'min',
      () => (keys.status().lastError === undefined ? 1 : 0),
    ),
    gauge(
      'shopward_keys_last_load_success_timestamp_seconds',
      'When verification keys were last loaded; 0: never, or a secret.',
      'min',
      () => Math.floor((keys.status().lastSuccessMs ?? 0) / 1000),
    ),
    counter(
      'shopward_key_load_failures',
      'Attempts to load the verification keys that failed, in every process.',
      () => keys.status().failures,
    ),
    gauge(
      'shopward_remembered_tokens',
      'Verified tokens in memory.',
      'sum',
      () => verifier.status().remembered,
    ),
  ];
}

export interface WatchedKeys {
  readonly source: KeySource;
  /** Gets the first keys, and follows their files from there. Rejects as the source does. */
  start(): Promise<void>;
  /** Gets the keys anew, now (SIGHUP). */
  reload(): Promise<void>;
  /** A new `auth.keys.secret`; of no effect for keys of another kind. */
  useSecret(secret: string | undefined): void;
  close(): void;
}

/** The one source of verification keys that the configuration names; key files are followed. */
function createWatchedKeys({ keys, algorithms }: Config['auth'], now: () => number, log: Log): WatchedKeys {
  if ('secret' in keys) return watchSecretKey(keys.secret, algorithms);
  if ('files' in keys)
    return watchKeyFiles(keys.files, new FileKeySource({ files: keys.files, algorithms, now }), log);
  const source = new JwksKeySource({ url: keys.jwks, algorithms, now, onLoad: createLoadLog(log) });
  source.onChange(() => {
    log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'there are new keys');
  });
  return {
    source,
    start: () => source.start(),
    reload: () => source.refresh(),
    useSecret: () => {},
    close: () => source.close(),
  };
}

function watchSecretKey(first: string, algorithms: Config['auth']['algorithms']): WatchedKeys {
  const source = new SecretKeySource({ secret: first, algorithms });
  let current = first;
  return {
    source,
    start: () => source.start(),
    reload: async () => {},
    useSecret(secret) {
      if (secret === undefined || secret === current) return;
      source.replace(secret);
      current = secret;
    },
    close: () => source.close(),
  };
}

function watchKeyFiles(files: readonly string[], source: FileKeySource, log: Log): WatchedKeys {
  const reload = async () => {
    const problems = await source.reload();
    if (problems.length === 0)
      log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'keys were reloaded');
    else
      log.error({ event: 'keys-refused', problems }, 'keys were not reloaded; the last good ones are used');
  };
  const watches: FileWatch[] = [];
  return {
    source,
    async start() {
      // Read before the source reads: an edit in between is reported once too often, never missed.
      const known = await Promise.all(files.map((file) => readFile(file).catch(() => undefined)));
      await source.start();
      for (const [i, file] of files.entries()) {
        const bytes = known[i];
        watches.push(new FileWatch(file, () => void reload(), bytes && { known: bytes }));
      }
    },
    reload,
    useSecret: () => {},
    close: () => {
      for (const watch of watches) watch.close();
      source.close();
    },
  };
}

/** Says when a key set cannot be had, for another reason than before, and when it can again. */
function createLoadLog(log: Log): (error: string | undefined) => void {
  let reported: string | undefined;
  return (error) => {
    if (error === reported) return;
    reported = error;
    const text = keyFaultText({ lastError: error });
    if (text === undefined) log.info({ event: 'keys-back' }, 'the key set can be had again');
    else log.error({ event: 'keys-not-refreshed', reason: error }, `the key set cannot be had: ${text}`);
  };
}
