import {
  type Component,
  type ComponentLog,
  counter,
  gauge,
  type Health,
  type HealthDetail,
  type MetricSpec,
  total,
} from '../lib/component.ts';
import { FileWatch, readOnce } from '../lib/watched-file.ts';
import { FileKeySource, maxKeyFileBytes } from './file-key-source.ts';
import { JwksKeySource } from './jwks-key-source.ts';
import type { KeySource } from './key-source.ts';
import { SecretKeySource } from './secret-key-source.ts';

/** `auth`: where keys come from, and what they may verify. */
interface SigningKeysOptions {
  readonly keys:
    | { readonly secret: string }
    | { readonly files: readonly string[] }
    | { readonly jwks: string };
  readonly algorithms: readonly string[];
}

/** The keys that access tokens are verified with, from the one source that the configuration names. */
export interface SigningKeys extends Component {
  readonly source: KeySource;
  health(): Health;
  /** A new `auth.keys.secret`; of no effect for keys of another kind. */
  useSecret(secret: string | undefined): void;
  /** The keys in use, with the time since when each has been; what is not public of a key stays out. */
  describe(): KeyDescription[];
}

/** A key, as far as it is public. */
interface KeyDescription {
  readonly kid: string | null;
  readonly algorithms: readonly string[];
  readonly fingerprint: string | null;
  readonly sinceMs: number;
}

type Source = Pick<SigningKeys, 'source'> &
  Partial<Pick<SigningKeys, 'start' | 'reload' | 'useSecret' | 'close'>>;

/** Key files are followed, a key set is fetched anew. `start` rejects as the source does: for files that hold no key. */
export function createSigningKeys(
  { keys, algorithms }: SigningKeysOptions,
  now: () => number,
  log: ComponentLog,
): SigningKeys {
  const own: Source =
    'secret' in keys
      ? watchSecret(keys.secret, algorithms)
      : 'files' in keys
        ? watchKeyFiles(keys.files, new FileKeySource({ files: keys.files, algorithms, now }), log)
        : fetchKeySet(keys.jwks, algorithms, now, log);
  const { source } = own;
  return {
    name: 'keys',
    title: 'Keys',
    start: () => source.start(),
    useSecret: () => {},
    close: () => source.close(),
    ...own,
    health: () => keyHealth(source),
    describe: createDescribe(source),
    metrics: keyMetrics(source),
  };
}

function watchSecret(first: string, algorithms: readonly string[]): Source {
  const source = new SecretKeySource({ secret: first, algorithms });
  let current = first;
  return {
    source,
    useSecret(secret) {
      if (secret === undefined || secret === current) return;
      source.replace(secret);
      current = secret;
    },
  };
}

function watchKeyFiles(files: readonly string[], source: FileKeySource, log: ComponentLog): Source {
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
      const known = await Promise.all(files.map((file) => readOnce(file, maxKeyFileBytes)));
      await source.start();
      for (const [i, file] of files.entries()) {
        const read = known[i];
        watches.push(new FileWatch(file, reload, read && 'bytes' in read ? { known: read.bytes } : {}));
      }
    },
    reload,
    close() {
      for (const watch of watches) watch.close();
      source.close();
    },
  };
}

function fetchKeySet(
  url: string,
  algorithms: readonly string[],
  now: () => number,
  log: ComponentLog,
): Source {
  const source = new JwksKeySource({ url, algorithms, now, onLoad: createLoadLog(log) });
  source.onChange(() => {
    log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'there are new keys');
  });
  return { source, reload: () => source.refresh() };
}

/** Says when a key set cannot be had, for another reason than before, and when it can again. */
function createLoadLog(log: ComponentLog): (error: string | undefined) => void {
  let reported: string | undefined;
  return (error) => {
    if (error === reported) return;
    reported = error;
    if (error === undefined) log.info({ event: 'keys-back' }, 'the key set can be had again');
    else {
      const text = `the key set cannot be had: ${faultText(error)}`;
      log.error({ event: 'keys-not-refreshed', reason: error }, text);
    }
  };
}

/** Without any key nobody with a token gets in: clients are better sent to another process. */
function keyHealth(source: KeySource): Health {
  const { kind, keys, unusableKeys, loads, failures, lastSuccessMs, lastError } = source.status();
  const fault = lastError === undefined ? undefined : faultText(lastError);
  const details: HealthDetail[] = [
    { label: 'from', value: kind },
    { label: 'usable', value: keys, combine: 'max' },
    { label: 'unusable', value: unusableKeys, combine: 'max' },
    total('loads', loads),
    total('failures', failures),
    { label: 'last load', value: lastSuccessMs ?? null, unit: 'time', combine: 'max' },
  ];
  if (keys === 0) {
    const why = fault ?? 'loading';
    const reasons = [`no keys for access tokens yet: ${why}`];
    return { status: 'down', reasons, text: `no keys were ever had: ${why}`, details, isUnready: true };
  }
  if (fault !== undefined) {
    const reasons = [`keys were not refreshed, the last good ones are used: ${fault}`];
    return {
      status: 'degraded',
      reasons,
      text: `not refreshed, the last good keys are used: ${fault}`,
      details,
    };
  }
  return { status: 'ok', reasons: [], text: keys === 1 ? 'one usable key' : `${keys} usable keys`, details };
}

/** Each word says what to look at first. */
const faultTexts: Readonly<Record<string, string>> = {
  unreachable: 'unreachable: no connection to the source, or it broke',
  timeout: 'timeout: the source does not answer',
  status: 'status: the source answers with another status than 200',
  redirect: 'redirect: the source sends elsewhere, which is never followed',
  'too-large': 'too-large: the answer is larger than any key set',
  malformed: 'malformed: the answer is no key set',
  empty: 'empty: no key of the set can verify a configured algorithm',
  ambiguous: 'ambiguous: two different keys of one kid',
  unusable: 'unusable: the log (keys-refused) names the file',
};

function faultText(error: string): string {
  return faultTexts[error] ?? error;
}

/** The worker that is worst off is shown. */
function keyMetrics(source: KeySource): MetricSpec[] {
  return [
    gauge('shopward_keys', 'Usable verification keys.', 'min', () => source.status().keys),
    gauge(
      'shopward_keys_last_load_success',
      'Whether the last attempt to load the verification keys succeeded.',
      'min',
      () => (source.status().lastError === undefined ? 1 : 0),
    ),
    gauge(
      'shopward_keys_last_load_success_timestamp_seconds',
      'When verification keys were last loaded; 0: never, or a secret.',
      'min',
      () => Math.floor((source.status().lastSuccessMs ?? 0) / 1000),
    ),
    counter(
      'shopward_key_load_failures',
      'Attempts to load the verification keys that failed, in every process.',
      () => source.status().failures,
    ),
  ];
}

function createDescribe(source: KeySource): () => KeyDescription[] {
  const seen = new Map<string, number>();
  const note = () => {
    const before = new Map(seen);
    seen.clear();
    for (const { fingerprint } of source.current()) {
      seen.set(fingerprint, before.get(fingerprint) ?? Date.now());
    }
  };
  source.onChange(note);
  return () => {
    note();
    const isSecret = source.status().kind === 'secret';
    return source.current().map(({ kid, algorithms, fingerprint }) => ({
      kid: kid ?? null,
      algorithms,
      fingerprint: isSecret ? null : fingerprint.slice(0, 12),
      sinceMs: seen.get(fingerprint) ?? Date.now(),
    }));
  };
}
