import { entityTagTimes } from '../entity-tags/times.ts';
import { writtenShape } from '../http/path-template.ts';
import { issuerProblems } from './issuers.ts';
import type { SettingProblem } from './issues.ts';
import type { Config, PartialConfig } from './schema.ts';
import { isLoopback, parseUpstreamUrl } from './values.ts';

interface Rule {
  readonly sections: readonly (keyof Config)[];
  check(config: Config): SettingProblem[];
}

/** Checks across sections. A rule runs if the sections that it needs are valid. */
const rules: readonly Rule[] = [
  rule(['admin'], adminProblems),
  rule(['listen', 'admin', 'authorize'], portProblems),
  rule(['authorize', 'trustedProxies'], authorizeWarnings),
  rule(['listen', 'upstream'], loopProblems),
  rule(['upstream'], upstreamTlsProblems),
  rule(['workers', 'store'], workerProblems),
  rule(['store'], failoverWarnings),
  rule(['auth'], ({ auth }) => issuerProblems(auth)),
  rule(['auth', 'trustedFields'], identityFieldProblems),
  rule(['auth', 'listen', 'trustedFields', 'trustedProxies'], proofProblems),
  rule(['entityTags', 'store', 'upstream'], entityTagTimeProblems),
  rule(['entityTags'], entityTagResourceProblems),
  rule(['urlResolver', 'protectedResourcesPath'], resolverProblems),
  rule(['refreshTokens'], refreshTokenProblems),
  rule(['telemetry'], telemetryProblems),
];

export function checkRules(config: PartialConfig): SettingProblem[] {
  return rules.flatMap(({ sections, check }) =>
    sections.every((section) => config[section] !== undefined) ? check(config as Config) : [],
  );
}

function rule<Key extends keyof Config>(
  sections: readonly Key[],
  check: (config: Pick<Config, Key>) => SettingProblem[],
): Rule {
  return { sections, check };
}

/** The admin port shows requests and purges mappings: on any address but loopback it needs `token` and `hosts`. */
function adminProblems({ admin }: Pick<Config, 'admin'>): SettingProblem[] {
  if (admin === false || isLoopback(admin.host)) return [];
  const problems: SettingProblem[] = [];
  if (admin.token === undefined) {
    problems.push({
      path: ['admin', 'token'],
      text: 'is required when admin.host is not a loopback address',
    });
  }
  if (admin.hosts.length === 0) {
    const text =
      'must name the hosts by which the admin port is addressed when admin.host is not a loopback address';
    problems.push({ path: ['admin', 'hosts'], text });
  }
  return problems;
}

function portProblems({ listen, admin, authorize }: Pick<Config, 'listen' | 'admin' | 'authorize'>) {
  const taken = [listen.port];
  const others = [
    [['admin', 'port'], admin === false ? 0 : admin.port],
    [['authorize', 'listen', 'port'], authorize === false ? 0 : authorize.listen.port],
  ] as const;
  return others.flatMap(([path, port]): SettingProblem[] => {
    const isTaken = port !== 0 && taken.includes(port);
    taken.push(port);
    return isTaken ? [{ path, text: 'must not be the port of another listener' }] : [];
  });
}

function authorizeWarnings({
  authorize,
  trustedProxies,
}: Pick<Config, 'authorize' | 'trustedProxies'>): SettingProblem[] {
  if (authorize === false || trustedProxies.length > 0) return [];
  const empty = 'answers each question with 403: trustedProxies is empty';
  return [{ path: ['authorize'], text: empty, severity: 'warning' }];
}

/** TLS settings without https: the operator would believe that the shop's certificate is checked. */
function upstreamTlsProblems({ upstream }: Pick<Config, 'upstream'>): SettingProblem[] {
  if (upstream.tls === undefined || parseUpstreamUrl(upstream.url)?.scheme !== 'http') return [];
  return [{ path: ['upstream', 'tls'], text: 'has no effect: upstream.url is http' }];
}

/** A proxy that is its own upstream uses up all connections and answers no request. */
function loopProblems({ listen, upstream }: Pick<Config, 'listen' | 'upstream'>): SettingProblem[] {
  const origin = parseUpstreamUrl(upstream.url);
  const hosts = ['0.0.0.0', '::', listen.host];
  if (origin === undefined || listen.port !== origin.port) return [];
  if (!isLoopback(origin.hostname) && !hosts.includes(origin.hostname)) return [];
  return [{ path: ['upstream', 'url'], text: 'is the public listener itself (listen.port)' }];
}

/** After a failover to a replica without the last claims, two writers may pass. */
function failoverWarnings({ store }: Pick<Config, 'store'>): SettingProblem[] {
  if (store.url.kind !== 'sentinel' || store.replicas > 0) return [];
  const text =
    'is 0 behind Sentinel: a failover may forget the claim of a write under way, and an update can be lost';
  return [{ path: ['store', 'replicas'], text, severity: 'warning' }];
}

function workerProblems({ workers, store }: Pick<Config, 'workers' | 'store'>): SettingProblem[] {
  if (workers === 1 || store.url.kind !== 'memory') return [];
  return [
    { path: ['workers'], text: 'needs a shared store (store.url): the memory store belongs to one process' },
  ];
}

/** A field that a trusted proxy may send cannot be one that only shopward may set. */
function identityFieldProblems({
  auth,
  trustedFields,
}: Pick<Config, 'auth' | 'trustedFields'>): SettingProblem[] {
  const trusted = new Set(trustedFields.map((name) => name.toLowerCase()));
  return Object.entries(auth.forward).flatMap(([key, name]) =>
    name !== undefined && trusted.has(name.toLowerCase())
      ? [{ path: ['auth', 'forward', key], text: 'must not be one of trustedFields' }]
      : [],
  );
}

/** Settings with which no client can give the proof that `auth.proof` asks for. */
function proofProblems({
  auth: { proof, proofNonceSecret },
  listen,
  trustedFields,
  trustedProxies,
}: Pick<Config, 'auth' | 'listen' | 'trustedFields' | 'trustedProxies'>): SettingProblem[] {
  const isForwarded = trustedProxies.length > 0 && trustedFields.some((name) => /^client-cert$/i.test(name));
  const noCertificate = `is ${proof}, but no client certificate can arrive: set listen.tls, or trustedProxies and trustedFields: [Client-Cert]`;
  const noDpop = 'has no effect: it needs auth.proof: dpop or any';
  const isCertified = proof === 'mtls' || proof === 'any';
  return [
    ...(isCertified && listen.tls === undefined && !isForwarded
      ? [{ path: ['auth', 'proof'], text: noCertificate }]
      : []),
    ...(proofNonceSecret !== undefined && (proof === 'none' || proof === 'mtls')
      ? [{ path: ['auth', 'proofNonceSecret'], text: noDpop }]
      : []),
  ];
}

type EntityTagSections = Pick<Config, 'entityTags' | 'store' | 'upstream'>;

/** Refuses times with which an update could be lost: even a write that is sent late must end before its lease does. */
function entityTagTimeProblems({ entityTags, store, upstream }: EntityTagSections): SettingProblem[] {
  if (entityTags === false) return [];
  const problems: SettingProblem[] = [];
  if (entityTagTimes({ ...upstream, ...entityTags, storeTimeout: store.timeout }) === undefined) {
    const text = 'must be longer than entityTags.sendBy, store.timeout and 0.5s together';
    problems.push({ path: ['entityTags', 'lease'], text });
  }
  if (entityTags.wait > entityTags.lease)
    problems.push({ path: ['entityTags', 'wait'], text: 'must not be longer than entityTags.lease' });
  return problems;
}

function entityTagResourceProblems({ entityTags }: Pick<Config, 'entityTags'>): SettingProblem[] {
  if (entityTags === false) return [];
  const shapes = entityTags.resources.map(({ member }) => writtenShape(member));
  return entityTags.resources.flatMap(({ collection, member }, index) => {
    const problem = (key: string, text: string) => [{ path: ['entityTags', 'resources', index, key], text }];
    if (!member.startsWith(`${collection}/{`) || member.includes('/', collection.length + 1))
      return problem('member', `must be the collection and one {name}, such as ${collection}/{id}`);
    if (shapes.indexOf(writtenShape(member)) < index)
      return problem('member', 'names a resource that an earlier row names');
    // A write would need two leases at once.
    if (shapes.some((upper) => writtenShape(collection).startsWith(`${upper}/`)))
      return problem('collection', 'lies below the member of another row: track one of the two');
    return [];
  });
}

function resolverProblems(config: Pick<Config, 'urlResolver' | 'protectedResourcesPath'>): SettingProblem[] {
  const { urlResolver, protectedResourcesPath } = config;
  if (urlResolver === false || urlResolver.path.toLowerCase() !== protectedResourcesPath.toLowerCase())
    return [];
  return [{ path: ['urlResolver', 'path'], text: 'must not be the path of protectedResourcesPath' }];
}

function refreshTokenProblems({ refreshTokens }: Pick<Config, 'refreshTokens'>): SettingProblem[] {
  if (refreshTokens === false) return [];
  const seen = new Set<string>();
  const found = refreshTokens.endpoints.flatMap(
    ({ kind, method, path: template }, index): SettingProblem[] => {
      const path = ['refreshTokens', 'endpoints', index];
      const key = `${kind} ${method} ${writtenShape(template)}`;
      const isFirst = !seen.has(key);
      seen.add(key);
      if (isFirst) return [];
      return [{ path, text: 'names an endpoint that an earlier row names' }];
    },
  );
  if (refreshTokens.replay === 'end-family' && refreshTokens.leeway === 0) {
    const text =
      'is 0s while replay is end-family: two tabs that send the same token sign their user out; 10s prevents this';
    found.push({ path: ['refreshTokens', 'leeway'], text, severity: 'warning' });
  }
  return found;
}

/** The packages that `src/telemetry/otlp.ts` loads. The operator installs them, since few use them. */
const otlpPackages = [
  '@opentelemetry/api',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-metrics-otlp-http',
];

function telemetryProblems({ telemetry }: Pick<Config, 'telemetry'>): SettingProblem[] {
  const missing = telemetry.otlp === undefined ? [] : otlpPackages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return [];
  const text = `needs packages that are not installed beside shopward: npm install ${missing.join(' ')}`;
  return [{ path: ['telemetry', 'otlp'], text }];
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
