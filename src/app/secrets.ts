import { isDeepStrictEqual } from 'node:util';
import { type Certificate, certificateEndMs, certificateNotice } from '../config/certificates.ts';
import { listIssuers } from '../config/issuers.ts';
import type { LoadedConfig, RefusedConfig } from '../config/load.ts';
import { type Config, hotSections } from '../config/schema.ts';
import { type Component, gauge, healthOf } from '../lib/component.ts';
import { formatProblem, type Problem } from '../lib/problem.ts';
import { FileWatch } from '../lib/watched-file.ts';
import type { RedisCredentials } from '../redis/clients.ts';
import type { Log } from '../telemetry/log.ts';
import type { UpstreamCertificates } from '../upstream/connection.ts';
import type { IssuerSecrets } from './issuers.ts';

type HotSections = Pick<Config, (typeof hotSections)[number]>;

/** The configuration of the start, with the sections that have changed since. */
export function createSettings(start: Config, log: Log) {
  let config = start;
  const warn = () => {
    if (config.mode === 'observe')
      log.warn({ event: 'observe' }, 'OBSERVE MODE: refused tokens and writes are only counted');
  };
  warn();
  return {
    inForce: (): Config => config,
    use(sections: HotSections): void {
      const { mode } = config;
      config = { ...start, ...sections };
      log.level = sections.log.level;
      if (sections.mode !== mode) warn();
    },
  };
}

/** The settings that take effect without a restart when the files that they come from change. */
export interface Secrets {
  readonly hot: HotSections;
  /** `listen.tls`. */
  readonly tls: Certificate | undefined;
  /** PEM texts of `upstream.tls`. */
  readonly upstreamTls?: UpstreamCertificates | undefined;
  /** User and passwords of `store`, and the PEM texts of `store.tls`. */
  readonly store: RedisCredentials;
  /** For each issuer of `auth`: `keys.secret` and `introspection.clientSecret`. */
  readonly issuers: readonly IssuerSecrets[];
  /** `admin.token`. */
  readonly adminToken: string | undefined;
  /** Why the last change is not in force; empty: it is. */
  readonly problems: readonly Problem[];
}

/** The component that reports whether the last change is in force, and when certificates expire. */
export function createSecretsReport(start: Secrets) {
  let inForce = start;
  const reload = gauge(
    'shopward_secrets_last_reload_success',
    'Whether the last change of a certificate or of a file with a secret is in force.',
    'min',
    () => (inForce.problems.length === 0 ? 1 : 0),
  );
  const ends = [...certificatesOf(start).keys()].map((setting) => ({
    ...gauge('shopward_certificate_expiry_timestamp_seconds', 'When a certificate ends.', 'min', () => {
      const cert = certificatesOf(inForce).get(setting);
      return cert === undefined ? Number.NaN : Math.floor(certificateEndMs({ cert }) / 1000);
    }),
    labels: { setting },
  }));
  return {
    name: 'secrets',
    title: false,
    metrics: [reload, ...ends],
    health() {
      const { problems } = inForce;
      const reasons = problems.map((problem) => `not in force: ${formatProblem(problem)}`);
      return healthOf([...reasons, ...certificateNotices(inForce)], { problems });
    },
    apply(changed: Secrets): void {
      // Without a new certificate the old one stays.
      inForce = { ...changed, tls: changed.tls ?? inForce.tls };
    },
  } satisfies Component & { apply: unknown };
}

/** Setting -> the PEM text of its certificate. */
function certificatesOf({ tls, upstreamTls, store }: Secrets): Map<string, string> {
  const used = Object.entries({ 'listen.tls': tls, 'upstream.tls': upstreamTls, 'store.tls': store.tls });
  return new Map(used.flatMap(([setting, pems]) => (pems?.cert === undefined ? [] : [[setting, pems.cert]])));
}

function certificateNotices(secrets: Secrets): string[] {
  return [...certificatesOf(secrets)].flatMap(([setting, cert]) => {
    const notice = certificateNotice(certificateEndMs({ cert }), Date.now());
    return notice ? `${setting}: ${notice}` : [];
  });
}

/** TLS 1.2: the suites of RFC 9325 section 4.2, and their counterparts with CHACHA20. */
const ciphers = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

export function secretsOf({ config, files }: Pick<LoadedConfig, 'config' | 'files'>): Secrets {
  const { upstream, store } = config;
  const pemsOf = (section: string): Readonly<Record<string, string>> => {
    const start = `${section}.tls.`;
    const found = files.flatMap(({ role, text }) =>
      role.startsWith(start) && text !== undefined ? [[role.slice(start.length), text]] : [],
    );
    return Object.fromEntries(found);
  };
  const { cert, key } = pemsOf('listen');
  const { username, password } = store.url.kind === 'memory' ? {} : store.url;
  return {
    hot: hotOf(config),
    upstreamTls: upstream.tls && pemsOf('upstream'),
    store: {
      ...{ username, password, sentinelPassword: store.sentinelPassword },
      tls: store.url.kind !== 'memory' && store.url.tls ? pemsOf('store') : undefined,
    },
    tls: cert === undefined || key === undefined ? undefined : { ...config.listen.tls, ciphers, cert, key },
    issuers: listIssuers(config.auth).map(({ keys, introspection }) => ({
      key: keys && 'secret' in keys ? keys.secret : undefined,
      client: introspection?.clientSecret,
    })),
    adminToken: config.admin === false ? undefined : config.admin.token,
    problems: [],
  };
}

function hotOf({ mode, rateLimits, log }: Config): HotSections {
  return { mode, rateLimits, log };
}

/**
 * Watches the configuration file, the files of certificates and every file that `${file:…}` names. After a change the whole
 * configuration is read and checked as at the start; either everything that may change is replaced, or nothing is. Secrets
 * come from the files that the configuration text of the start names. Changed settings that need a restart are logged.
 */
export function watchConfig(loaded: LoadedConfig, onChange: (secrets: Secrets) => void, log: Log) {
  let [inForce, current] = [secretsOf(loaded), loaded.config];
  let reading: Promise<void> = Promise.resolve();
  const problems = { secrets: [] as readonly Problem[], configuration: [] as readonly Problem[] };

  const take = (part: keyof typeof problems, read: LoadedConfig | RefusedConfig) => {
    problems[part] = 'problems' in read ? read.problems.filter(({ severity }) => severity === 'error') : [];
    if ('problems' in read) {
      log.error(
        { event: `${part}-refused`, problems: problems[part].map(formatProblem) },
        `${part} not reloaded; the last good state is used`,
      );
    } else {
      const isSecret = part === 'secrets';
      const settings = findRestartSettings(isSecret ? loaded.config : current, read.config, isSecret);
      const before = inForce;
      inForce = isSecret ? { ...secretsOf(read), hot: inForce.hot } : { ...inForce, hot: hotOf(read.config) };
      if (isSecret) current = read.config;
      // The file may belong only to a setting that needs a restart.
      const isChanged = !isDeepStrictEqual({ ...before, problems: [] }, { ...inForce, problems: [] });
      logTaken(log, part, isChanged, settings);
    }
    inForce = { ...inForce, problems: [...problems.configuration, ...problems.secrets] };
    onChange(inForce);
  };
  // Reads run one after the other, so that the last one gets the latest content.
  const watch = (file: string, bytes: Buffer, part: keyof typeof problems, read: LoadedConfig['reread']) =>
    new FileWatch(
      file,
      () => {
        reading = reading.then(read).then((given) => take(part, given));
      },
      { known: bytes },
    );
  const watches = [...filesOfSecrets(loaded)].map(([file, bytes]) =>
    watch(file, bytes, 'secrets', loaded.reread),
  );
  const [config] = loaded.files;
  if (config?.text !== undefined)
    watches.push(watch(config.path, Buffer.from(config.text), 'configuration', loaded.reload));
  return {
    reload() {
      for (const each of watches) each.reload();
    },
    close() {
      for (const each of watches) each.close();
    },
  };
}

function logTaken(log: Log, part: string, isChanged: boolean, settings: readonly string[]): void {
  if (isChanged) log.info({ event: `${part}-reloaded` }, `${part} reloaded`);
  if (settings.length > 0)
    log.warn({ event: 'restart-needed', settings }, 'these settings take effect at the next start');
}

function filesOfSecrets({ files, secretFiles }: LoadedConfig): Map<string, Buffer> {
  const pems = files.flatMap(({ role, path, text }) =>
    role.includes('.tls.') && text !== undefined ? [[path, Buffer.from(text)] as const] : [],
  );
  return new Map([...secretFiles, ...pems]);
}

/** Settings whose files are followed, by the last part of their names, such as `secret` of `auth.keys.secret`. */
const followed = new Set(['secret', 'clientSecret', 'username', 'password', 'token', 'sentinelPassword']);

/** Names of changed settings that need a restart. `isSecret`: without the `followed` ones. */
function findRestartSettings(before: Config, after: Config, isSecret: boolean): string[] {
  const textOf = (value: unknown) =>
    JSON.stringify(value, (key, one) => (isSecret && followed.has(key) ? undefined : one));
  const flat = (config: Config) =>
    Object.entries(config).flatMap(([section, value]) =>
      typeof value === 'object' && !Array.isArray(value)
        ? Object.entries(value).map(([key, one]) => [`${section}.${key}`, textOf({ [key]: one })] as const)
        : [[section, textOf(value)] as const],
    );
  const [known, now] = [before, after].map((config) => new Map(flat(config)));
  const isHot = (name: string) => hotSections.some((hot) => hot === name.split('.')[0]);
  return [...new Set([...(known?.keys() ?? []), ...(now?.keys() ?? [])])].filter(
    (name) => !isHot(name) && known?.get(name) !== now?.get(name),
  );
}
