import { type Certificate, certificateEndMs, certificateNotice } from '../config/certificates.ts';
import { listIssuers } from '../config/issuers.ts';
import type { LoadedConfig, RefusedConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { type Component, gauge, type Health, healthOf, type MetricSpec } from '../lib/component.ts';
import { isolated } from '../lib/faults.ts';
import { formatProblem, type Problem } from '../lib/problem.ts';
import { FileWatch } from '../lib/watched-file.ts';
import type { Log } from '../telemetry/log.ts';
import type { UpstreamCertificates } from '../upstream/connection.ts';
import type { IssuerSecrets } from './issuers.ts';

/** The settings that take effect without a restart when the files change that they come from. */
export interface Secrets {
  /** `listen.tls`. */
  readonly tls: Certificate | undefined;
  /** PEM texts of `upstream.tls`. */
  readonly upstreamTls?: UpstreamCertificates | undefined;
  /** Of each issuer of `auth`: its `keys.secret` and `introspection.clientSecret`. */
  readonly issuers: readonly IssuerSecrets[];
  /** `admin.token`. */
  readonly adminToken: string | undefined;
  /** Why the last change is not in force; empty when it is. */
  readonly problems: readonly Problem[];
}

/** What is known of them in a process that serves. */
export class SecretsInForce implements Component {
  readonly name = 'secrets';
  readonly title = false;
  readonly metrics: readonly MetricSpec[];
  #problems: readonly Problem[];
  #certificateEndMs: number | undefined;
  #upstreamTls: Secrets['upstreamTls'];

  constructor({ problems, tls, upstreamTls }: Secrets) {
    this.#problems = problems;
    this.#certificateEndMs = tls && certificateEndMs(tls);
    this.#upstreamTls = upstreamTls;
    const reload = gauge(
      'shopward_secrets_last_reload_success',
      'Whether the last change of a certificate or of a file with a secret is in force.',
      'min',
      () => (this.#problems.length === 0 ? 1 : 0),
    );
    const certificateEnd = gauge(
      'shopward_certificate_expiry_timestamp_seconds',
      'When the certificate of `listen.tls` ends.',
      'min',
      () => Math.floor((this.#certificateEndMs ?? 0) / 1000),
    );
    this.metrics = this.#certificateEndMs === undefined ? [reload] : [reload, certificateEnd];
  }

  health(): Health {
    const problems = this.#problems;
    const reasons = problems.map((problem) => `secrets: ${formatProblem(problem)}`);
    const notice = certificateNotice(this.#certificateEndMs ?? Number.NaN, Date.now());
    if (notice) reasons.push(`listen.tls: ${notice}`);
    const upstreamNotice = clientCertificateNotice(this.#upstreamTls);
    if (upstreamNotice) reasons.push(`upstream.tls: ${upstreamNotice}`);
    return healthOf(reasons, { problems });
  }

  apply({ problems, tls, upstreamTls }: Secrets): void {
    this.#problems = problems;
    this.#upstreamTls = upstreamTls;
    if (tls) this.#certificateEndMs = certificateEndMs(tls);
  }
}

function clientCertificateNotice(tls: Secrets['upstreamTls']): string | undefined {
  if (tls?.cert === undefined) return undefined;
  return certificateNotice(certificateEndMs({ cert: tls.cert }), Date.now());
}

type Loaded = Pick<LoadedConfig, 'config' | 'files' | 'secretFiles' | 'reread'>;

export function secretsOf({ config, files }: Pick<Loaded, 'config' | 'files'>): Secrets {
  const textOf = (wanted: string) => files.find(({ role }) => role === wanted)?.text;
  const [cert, key] = [textOf('certificate'), textOf('certificate-key')];
  const { upstream } = config;
  return {
    upstreamTls: upstream.tls && {
      ca: textOf('upstream-ca'),
      cert: textOf('upstream-certificate'),
      key: textOf('upstream-certificate-key'),
    },
    tls: cert === undefined || key === undefined ? undefined : { ...config.listen.tls, cert, key },
    issuers: listIssuers(config.auth).map(({ keys, introspection }) => ({
      key: keys && 'secret' in keys ? keys.secret : undefined,
      client: introspection?.clientSecret,
    })),
    adminToken: config.admin === false ? undefined : config.admin.token,
    problems: [],
  };
}

/**
 * Follows the files of certificates and every file that `${file:…}` names. A change is checked as at start, all of it, and
 * is in force whole or not at all. What only a restart can change is reported.
 */
export function watchSecrets(loaded: Loaded, onChange: (secrets: Secrets) => void, log: Log) {
  const known = new Map(loaded.secretFiles);
  for (const { role, path, text } of loaded.files) {
    if (/^(?:upstream-|certificate)/.test(role) && text !== undefined) known.set(path, Buffer.from(text));
  }
  let inForce = secretsOf(loaded);
  let reading: Promise<void> = Promise.resolve();

  const reportCertificate = () => {
    const notice = inForce.tls && certificateNotice(certificateEndMs(inForce.tls), Date.now());
    if (notice) log.warn({ event: 'certificate-expires' }, `listen.tls: ${notice}`);
    const upstreamNotice = clientCertificateNotice(inForce.upstreamTls);
    if (upstreamNotice) log.warn({ event: 'certificate-expires' }, `upstream.tls: ${upstreamNotice}`);
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
      inForce = secretsOf(read);
      reportCertificate();
      log.info({ event: 'secrets-reloaded' }, 'secrets were reloaded');
      const settings = findBound(loaded.config, read.config);
      if (settings.length > 0) {
        log.warn({ event: 'restart-needed', settings }, 'these settings take effect at the next start');
      }
    }
    onChange(inForce);
  };
  // One after the other: the last reading is of the last content.
  const changed = () => {
    reading = reading.then(loaded.reread).then(take);
  };
  const watches = [...known].map(([file, bytes]) => new FileWatch(file, changed, { known: bytes }));
  return {
    /** Looks at the files now (SIGHUP). */
    reload() {
      for (const watch of watches) watch.reload();
    },
    close() {
      clearInterval(daily);
      for (const watch of watches) watch.close();
    },
  };
}

const followed = new Set(['admin.token']);
/** The same below a setting. */
const followedParts = new Set(['secret', 'clientSecret']);

/** Settings that differ and cannot be changed while the proxy runs. */
function findBound(before: Config, after: Config): string[] {
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
