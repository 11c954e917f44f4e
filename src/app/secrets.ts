import { isDeepStrictEqual } from 'node:util';
import { type Certificate, certificateEndMs, certificateNotice } from '../config/certificates.ts';
import { listIssuers } from '../config/issuers.ts';
import type { LoadedConfig, RefusedConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { type Component, type Health, type MetricSpec, gauge, healthOf } from '../lib/component.ts';
import { isolated } from '../lib/faults.ts';
import { type Problem, formatProblem } from '../lib/problem.ts';
import { FileWatch } from '../lib/watched-file.ts';
import type { RedisCredentials } from '../redis/clients.ts';
import type { Log } from '../telemetry/log.ts';
import type { UpstreamCertificates } from '../upstream/connection.ts';
import type { IssuerSecrets } from './issuers.ts';

/** The settings that take effect without a restart when the files that they come from change. */
export interface Secrets {
  /** `listen.tls`. */
  readonly tls: Certificate | undefined;
  /** PEM texts of `upstream.tls`. */
  readonly upstreamTls?: UpstreamCertificates | undefined;
  /** User and passwords of `store`, and the PEM texts of `store.tls`. */
  readonly store: RedisCredentials;
  /** Of each issuer of `auth`: its `keys.secret` and `introspection.clientSecret`. */
  readonly issuers: readonly IssuerSecrets[];
  /** `admin.token`. */
  readonly adminToken: string | undefined;
  /** Why the last change is not in force; empty when it is. */
  readonly problems: readonly Problem[];
}

/** Reports whether the last change is in force, and when certificates expire. */
export class SecretsInForce implements Component {
  readonly name = 'secrets';
  readonly title = false;
  readonly metrics: readonly MetricSpec[];
  #inForce: Secrets;

  constructor(secrets: Secrets) {
    this.#inForce = secrets;
    const reload = gauge(
      'shopward_secrets_last_reload_success',
      'Whether the last change of a certificate or of a file with a secret is in force.',
      'min',
      () => (this.#inForce.problems.length === 0 ? 1 : 0),
    );
    const ends = [...certificatesOf(secrets).keys()].map((setting) => ({
      ...gauge('shopward_certificate_expiry_timestamp_seconds', 'When a certificate ends.', 'min', () => {
        const cert = certificatesOf(this.#inForce).get(setting);
        return cert === undefined ? Number.NaN : Math.floor(certificateEndMs({ cert }) / 1000);
      }),
      labels: { setting },
    }));
    this.metrics = [reload, ...ends];
  }

  health(): Health {
    const { problems } = this.#inForce;
    const reasons = problems.map((problem) => `secrets: ${formatProblem(problem)}`);
    return healthOf([...reasons, ...certificateNotices(this.#inForce)], { problems });
  }

  apply(secrets: Secrets): void {
    // Without a certificate there is nothing to renew.
    this.#inForce = { ...secrets, tls: secrets.tls ?? this.#inForce.tls };
  }
}

/** Setting -> the PEM text of its certificate. */
function certificatesOf({ tls, upstreamTls, store }: Secrets): Map<string, string> {
  const certificates = new Map<string, string>();
  for (const [setting, cert] of [
    ['listen.tls', tls?.cert],
    ['upstream.tls', upstreamTls?.cert],
    ['store.tls', store.tls?.cert],
  ] as const) {
    if (cert !== undefined) certificates.set(setting, cert);
  }
  return certificates;
}

/** What is to be said of the certificates in force: that one has expired, or soon will. */
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

type Loaded = Pick<LoadedConfig, 'config' | 'files' | 'secretFiles' | 'reread'>;

export function secretsOf({ config, files }: Pick<Loaded, 'config' | 'files'>): Secrets {
  const textOf = (wanted: string) => files.find(({ role }) => role === wanted)?.text;
  const [cert, key] = [textOf('certificate'), textOf('certificate-key')];
  const { upstream, store } = config;
  const pemsOf = (section: 'upstream' | 'store') => {
    const pems = {
      ca: textOf(`${section}-ca`),
      cert: textOf(`${section}-certificate`),
      key: textOf(`${section}-certificate-key`),
    };
    return Object.fromEntries(Object.entries(pems).filter(([, text]) => text !== undefined));
  };
  const { username, password } = store.url.kind === 'memory' ? {} : store.url;
  return {
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

/**
 * Watches the files of certificates and every file that `${file:…}` names. After a change the whole configuration is read
 * and checked as at the start, and either all secrets are replaced or none. Changed settings that need a restart are logged.
 */
export function watchSecrets(loaded: Loaded, onChange: (secrets: Secrets) => void, log: Log) {
  const known = new Map(loaded.secretFiles);
  for (const { role, path, text } of loaded.files) {
    if (/^(?:upstream-|store-|certificate)/.test(role) && text !== undefined)
      known.set(path, Buffer.from(text));
  }
  let inForce = secretsOf(loaded);
  let reading: Promise<void> = Promise.resolve();

  const reportCertificate = () => {
    for (const notice of certificateNotices(inForce)) log.warn({ event: 'certificate-expires' }, notice);
  };
  reportCertificate();
  const daily = setInterval(isolated(reportCertificate), 86_400_000).unref();

  const take = (read: LoadedConfig | RefusedConfig) => {
    if ('problems' in read) {
      const problems = read.problems.filter(({ severity }) => severity === 'error');
      log.error(
        { event: 'secrets-refused', problems: problems.map(formatProblem) },
        'secrets were not reloaded; the last good ones are used',
      );
      inForce = { ...inForce, problems };
    } else {
      const before = inForce;
      inForce = secretsOf(read);
      reportCertificate();
      // A file may also be part of a setting that needs a restart.
      if (!isDeepStrictEqual(before, inForce)) {
        log.info({ event: 'secrets-reloaded' }, 'the secrets of the files are in force');
      }
      const settings = findRestartSettings(loaded.config, read.config);
      if (settings.length > 0) {
        log.warn({ event: 'restart-needed', settings }, 'these settings take effect at the next start');
      }
    }
    onChange(inForce);
  };
  // One after the other, so that the last reading has the last content.
  const changed = () => {
    reading = reading.then(loaded.reread).then(take);
  };
  const watches = [...known].map(([file, bytes]) => new FileWatch(file, changed, { known: bytes }));
  return {
    /** Checks the files now (SIGHUP). */
    reload() {
      for (const watch of watches) watch.reload();
    },
    close() {
      clearInterval(daily);
      for (const watch of watches) watch.close();
    },
  };
}

const followed = new Set(['admin.token', 'store.sentinelPassword']);
/** The same by the last part of a name, such as `auth.keys.secret`. */
const followedParts = new Set(['secret', 'clientSecret', 'username', 'password']);

/** Settings that differ and take effect only at a restart. */
function findRestartSettings(before: Config, after: Config): string[] {
  const flat = (config: Config) =>
    Object.entries(config).flatMap(([section, value]) =>
      Object.entries(Object(value)).map(
        ([key, one]) => [`${section}.${key}`, JSON.stringify(one, withoutFollowed)] as const,
      ),
    );
  const known = new Map(flat(before));
  return flat(after)
    .filter(([name, value]) => !followed.has(name) && known.get(name) !== value)
    .map(([name]) => name);
}

function withoutFollowed(key: string, value: unknown): unknown {
  return followedParts.has(key) ? undefined : value;
}
