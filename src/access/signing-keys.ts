import { createSecretKey, hash, type KeyObject } from 'node:crypto';
import {
  type Component,
  type ComponentLog,
  counter,
  gauge,
  type Health,
  type HealthDetail,
  healthOf,
  type MetricSpec,
  total,
} from '../lib/component.ts';
import { FileWatch, readOnce } from '../lib/watched-file.ts';
import { createDiscovery, JwksKeySource, type JwksKeySourceOptions } from './jwks-key-source.ts';
import { maxKeyFileBytes, readKeyFiles } from './key-document.ts';
import { KeptKeys, type KeySource, type VerificationKey } from './key-source.ts';
import { createOutageLog, faultText } from './provider-fetch.ts';

interface SigningKeysOptions {
  readonly keys:
    | { readonly secret: string }
    | { readonly files: readonly string[] }
    | { readonly jwks: string }
    | { readonly discover: true };
  readonly algorithms: readonly string[];
  /** `iss` of its tokens; needed to discover keys. */
  readonly issuer?: string | undefined;
  /** Name of the issuer. Undefined: there is only one. */
  readonly name?: string | undefined;
  readonly onDate?: JwksKeySourceOptions['onDate'];
}

/** The keys that verify access tokens of one issuer, from the one source in the configuration. */
export interface SigningKeys extends Component {
  readonly source: KeySource;
  health(): Health;
  /** Replaces `auth.keys.secret`; does nothing for other kinds of keys. */
  useSecret(secret: string | undefined): void;
  describe(): KeyDescription[];
}

export interface KeyDescription {
  /** Name of its issuer; null: there is only one issuer. */
  readonly issuer: string | null;
  readonly kid: string | null;
  readonly algorithms: readonly string[];
  /** The first characters of the digest of its public octets; null for a shared secret. */
  readonly fingerprint: string | null;
  /** When this process, or the first of several workers, began to use it. */
  readonly sinceMs: number;
}

type Source = Pick<SigningKeys, 'source'> &
  Partial<Pick<SigningKeys, 'start' | 'reload' | 'useSecret' | 'close'>>;

/** Key files are watched; a key set is fetched in the background. `start` rejects if the files have no usable key. */
export function createSigningKeys(
  options: SigningKeysOptions,
  now: () => number,
  componentLog: ComponentLog,
): SigningKeys {
  const { keys, algorithms, issuer = '', name, onDate } = options;
  const log = name === undefined ? componentLog : logOfIssuer(name, componentLog);
  const own: Source =
    'secret' in keys
      ? watchSecret(keys.secret, algorithms)
      : 'files' in keys
        ? watchKeyFiles(keys.files, algorithms, now, log)
        : fetchKeySet('jwks' in keys ? keys.jwks : createDiscovery(issuer), algorithms, now, log, onDate);
  const { source } = own;
  return {
    name: name === undefined ? 'keys' : `keys-${name}`,
    title: name === undefined ? 'Keys' : `Keys of ${name}`,
    useSecret: () => {},
    ...own,
    health: () => keyHealth(source, name),
    describe: createDescribe(source, name),
    metrics: keyMetrics(source, name),
  };
}

function logOfIssuer(issuer: string, log: ComponentLog): ComponentLog {
  const of =
    (level: keyof ComponentLog): ComponentLog[typeof level] =>
    (fields, text) =>
      log[level]({ ...fields, issuer }, `${issuer}: ${text}`);
  return { info: of('info'), warn: of('warn'), error: of('error'), debug: of('debug') };
}

/** The UTF-8 octets of the secret are the key; the configuration ensures its length. */
function watchSecret(first: string, algorithms: readonly string[]): Source {
  const source = new KeptKeys('secret');
  let used: string | undefined;
  const useSecret = (secret: string | undefined) => {
    if (secret === undefined || secret === used) return;
    used = secret;
    const material = createSecretKey(secret, 'utf8');
    const load = source.status().loads;
    source.loaded(algorithms.map((algorithm) => hmacKey(material, algorithm, load)));
  };
  useSecret(first);
  return { source, useSecret };
}

/** One imported key per algorithm, since a `KeyObject` would be imported again for each token. */
function hmacKey(secret: KeyObject, algorithm: string, load: number): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  // Not derived from the secret: a short secret could be guessed from its digest.
  const fingerprint = hash('sha256', `${algorithm} ${load}`);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint };
}

/** All files are read, or none counts: after a problem the last good keys stay. */
function watchKeyFiles(
  files: readonly string[],
  algorithms: readonly string[],
  now: () => number,
  log: ComponentLog,
): Source {
  const source = new KeptKeys('files');
  let last: Promise<unknown> = Promise.resolve();
  const read = async () => {
    const { keys, problems, ignored } = await readKeyFiles(files, algorithms);
    if (problems.length === 0) source.loaded(keys, ignored.length, now());
    else source.failed('unusable', problems.length + ignored.length);
    return problems;
  };
  // Reads run one after the other, so that an older one never overtakes a newer one.
  const load = () => {
    const loading = last.then(read);
    last = loading.catch(() => {});
    return loading;
  };
  const reload = async () => {
    const problems = await load();
    if (problems.length === 0)
      log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'keys were reloaded');
    else
      log.error({ event: 'keys-refused', problems }, 'keys were not reloaded; the last good ones are used');
  };
  const watches: FileWatch[] = [];
  return {
    source,
    async start() {
      // Read before the source does: an edit in between may be reported twice, but is never missed.
      const known = await Promise.all(files.map((file) => readOnce(file, maxKeyFileBytes)));
      const problems = await load();
      const texts = problems.map(({ file, text }) => (file === undefined ? text : `${file}: ${text}`));
      if (texts.length > 0) throw new Error(texts.join('\n'));
      for (const [i, file] of files.entries()) {
        const read = known[i];
        watches.push(new FileWatch(file, reload, read && 'bytes' in read ? { known: read.bytes } : {}));
      }
    },
    reload,
    close() {
      for (const watch of watches) watch.close();
    },
  };
}

function fetchKeySet(
  url: JwksKeySourceOptions['url'],
  algorithms: readonly string[],
  now: () => number,
  log: ComponentLog,
  onDate: JwksKeySourceOptions['onDate'],
): Source {
  const onLoad = createOutageLog(
    log,
    ['keys-not-refreshed', 'the key set cannot be loaded'],
    ['keys-back', 'the key set can be loaded again'],
  );
  const source = new JwksKeySource({ url, algorithms, now, onDate, onLoad });
  source.onChange(() => {
    log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'the keys have changed');
  });
  const refresh = () => source.refresh();
  return { source, start: refresh, reload: refresh, close: () => source.close() };
}

/** Without keys no token is accepted, so the process is not ready: a load balancer should use another one. */
function keyHealth(source: KeySource, issuer: string | undefined): Health {
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
  const of = issuer === undefined ? '' : ` of ${issuer}`;
  if (keys === 0) {
    const why = fault ?? 'loading';
    const reasons = [`no keys for access tokens${of} yet: ${why}`];
    return { status: 'down', reasons, text: `no keys loaded yet: ${why}`, details, isUnready: true };
  }
  if (fault === undefined)
    return healthOf([], { text: keys === 1 ? 'one usable key' : `${keys} usable keys`, details });
  const reason = `keys${of} were not refreshed, the last good ones are used: ${fault}`;
  return healthOf([reason], { text: `not refreshed, the last good keys are used: ${fault}`, details });
}

/** With several workers, gauges show the lowest value. */
function keyMetrics(source: KeySource, issuer: string | undefined): MetricSpec[] {
  const specs = [
    gauge('shopward_keys', 'Usable verification keys.', 'min', () => source.status().keys),
    gauge(
      'shopward_keys_last_load_success',
      'Whether the last attempt to load the verification keys succeeded.',
      'min',
      () => (source.status().lastError === undefined ? 1 : 0),
    ),
    gauge(
      'shopward_keys_last_load_success_timestamp_seconds',
      'When verification keys were last loaded; 0: never, or the key is a secret.',
      'min',
      () => Math.floor((source.status().lastSuccessMs ?? 0) / 1000),
    ),
    counter(
      'shopward_key_load_failures',
      'Failed attempts to load the verification keys, of all processes.',
      () => source.status().failures,
    ),
  ];
  return issuer === undefined ? specs : specs.map((spec) => ({ ...spec, labels: { issuer } }));
}

function createDescribe(source: KeySource, issuer: string | undefined): () => KeyDescription[] {
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
      issuer: issuer ?? null,
      kid: kid ?? null,
      algorithms,
      fingerprint: isSecret ? null : fingerprint.slice(0, 12),
      sinceMs: seen.get(fingerprint) ?? Date.now(),
    }));
  };
}
