import { entityTagTimes } from '../entity-tags/times.ts';
import { writtenShape } from '../http/path-template.ts';
import { issuerProblems } from './issuers.ts';
import { mistake, type SettingProblem, warning } from './issues.ts';
import type { Config, PartialConfig } from './schema.ts';
import { isLoopback, parseUpstreamUrl } from './values.ts';

interface Rule {
  readonly needs: readonly (keyof Config)[];
  readonly check: (config: Config) => Iterable<SettingProblem>;
}

/** A rule runs if the sections that it needs are valid. */
function rule<Key extends keyof Config>(
  needs: readonly Key[],
  check: (config: Pick<Config, Key>) => Iterable<SettingProblem>,
): Rule {
  return { needs, check };
}

/** Rules between settings, most of them of several sections. */
const rules: readonly Rule[] = [
  // The admin port shows requests and purges mappings.
  rule(['admin'], function* ({ admin }) {
    if (admin === false || isLoopback(admin.host)) return;
    if (admin.token === undefined)
      yield mistake('admin.token', 'is required when admin.host is not a loopback address');
    if (admin.hosts.length > 0) return;
    const text =
      'must name the hosts by which the admin port is addressed when admin.host is not a loopback address';
    yield mistake('admin.hosts', text);
  }),
  rule(['listen', 'admin', 'authorize'], function* ({ listen, admin, authorize }) {
    const taken = [listen.port];
    for (const [path, port] of [
      ['admin.port', admin === false ? 0 : admin.port],
      ['authorize.listen.port', authorize === false ? 0 : authorize.listen.port],
    ] as const) {
      if (port !== 0 && taken.includes(port)) yield mistake(path, 'must not be the port of another listener');
      taken.push(port);
    }
  }),
  rule(['authorize', 'trustedProxies'], function* ({ authorize, trustedProxies }) {
    if (authorize !== false && trustedProxies.length === 0)
      yield warning('authorize', 'answers each question with 403: trustedProxies is empty');
  }),
  // A proxy that is its own upstream uses up all connections and answers no request.
  rule(['listen', 'upstream'], function* ({ listen, upstream }) {
    const { hostname = '', port } = parseUpstreamUrl(upstream.url) ?? {};
    const isOwn = isLoopback(hostname) || ['0.0.0.0', '::', listen.host].includes(hostname);
    if (isOwn && port === listen.port)
      yield mistake('upstream.url', 'is the public listener itself (listen.port)');
  }),
  // The operator would believe that the shop's certificate is checked.
  rule(['upstream'], function* ({ upstream }) {
    if (upstream.tls !== undefined && parseUpstreamUrl(upstream.url)?.scheme === 'http')
      yield mistake('upstream.tls', 'has no effect: upstream.url is http');
  }),
  rule(['workers', 'store'], function* ({ workers, store }) {
    if (workers !== 1 && store.url.kind === 'memory')
      yield mistake('workers', 'needs a shared store (store.url): the memory store belongs to one process');
  }),
  // After a failover to a replica without the last claims, two writers may pass.
  rule(['store'], function* ({ store }) {
    if (store.url.kind !== 'sentinel' || store.replicas > 0) return;
    const text =
      'is 0 behind Sentinel: a failover may forget the claim of a write under way, and an update can be lost';
    yield warning('store.replicas', text);
  }),
  rule(['auth'], ({ auth }) => issuerProblems(auth)),
  // A field that a trusted proxy may send cannot be one that only shopward may set.
  rule(['auth', 'trustedFields'], function* ({ auth, trustedFields }) {
    const trusted = new Set(trustedFields.map((name) => name.toLowerCase()));
    for (const [key, name = ''] of Object.entries(auth.forward))
      if (trusted.has(name.toLowerCase()))
        yield mistake(`auth.forward.${key}`, 'must not be one of trustedFields');
  }),
  // Settings with which no client can give the proof that `auth.proof` asks for.
  rule(['auth', 'listen', 'trustedFields', 'trustedProxies'], function* (config) {
    const { auth, listen, trustedFields, trustedProxies } = config;
    const { proof, proofNonceSecret } = auth;
    const isForwarded =
      trustedProxies.length > 0 && trustedFields.some((name) => /^client-cert$/i.test(name));
    const canArrive = listen.tls !== undefined || isForwarded;
    const text = `is ${proof}, but no client certificate can arrive: set listen.tls, or trustedProxies and trustedFields: [Client-Cert]`;
    if ((proof === 'mtls' || proof === 'any') && !canArrive) yield mistake('auth.proof', text);
    if (proofNonceSecret !== undefined && (proof === 'none' || proof === 'mtls'))
      yield mistake('auth.proofNonceSecret', 'has no effect: it needs auth.proof: dpop or any');
  }),
  // With these times an update could be lost: even a write that is sent late must end before its lease does.
  rule(['entityTags', 'store', 'upstream'], function* ({ entityTags, store, upstream }) {
    if (entityTags === false) return;
    if (entityTagTimes({ ...upstream, ...entityTags, storeTimeout: store.timeout }) === undefined) {
      const text = 'must be longer than entityTags.sendBy, store.timeout and 0.5s together';
      yield mistake('entityTags.lease', text);
    }
    if (entityTags.wait > entityTags.lease)
      yield mistake('entityTags.wait', 'must not be longer than entityTags.lease');
  }),
  rule(['entityTags'], function* ({ entityTags }) {
    if (entityTags === false) return;
    const { resources } = entityTags;
    const shapes = resources.map(({ member }) => writtenShape(member));
    for (const [index, { collection, member }] of resources.entries()) {
      const at = ['entityTags', 'resources', index];
      if (!member.startsWith(`${collection}/{`) || member.includes('/', collection.length + 1))
        yield mistake([...at, 'member'], `must be the collection and one {name}, such as ${collection}/{id}`);
      else if (shapes.indexOf(writtenShape(member)) < index)
        yield mistake([...at, 'member'], 'names a resource that an earlier row names');
      // A write would need two leases at once.
      else if (shapes.some((upper) => writtenShape(collection).startsWith(`${upper}/`)))
        yield mistake([...at, 'collection'], 'lies below the member of another row: track one of the two');
    }
  }),
  rule(['urlResolver', 'protectedResourcesPath'], function* ({ urlResolver, protectedResourcesPath }) {
    if (urlResolver !== false && urlResolver.path.toLowerCase() === protectedResourcesPath.toLowerCase())
      yield mistake('urlResolver.path', 'must not be the path of protectedResourcesPath');
  }),
  rule(['refreshTokens'], function* ({ refreshTokens }) {
    if (refreshTokens === false) return;
    const { endpoints, replay, leeway } = refreshTokens;
    const seen = new Set<string>();
    for (const [index, { kind, method, path }] of endpoints.entries()) {
      const key = `${kind} ${method} ${writtenShape(path)}`;
      if (seen.has(key))
        yield mistake(['refreshTokens', 'endpoints', index], 'names an endpoint that an earlier row names');
      seen.add(key);
    }
    if (replay !== 'end-family' || leeway > 0) return;
    const text =
      'is 0s while replay is end-family: two tabs that send the same token sign their user out; 10s prevents this';
    yield warning('refreshTokens.leeway', text);
  }),
  rule(['telemetry'], function* ({ telemetry }) {
    const missing = telemetry.otlp === undefined ? [] : otlpPackages.filter((name) => !isInstalled(name));
    const text = `needs packages that are not installed beside shopward: npm install ${missing.join(' ')}`;
    if (missing.length > 0) yield mistake('telemetry.otlp', text);
  }),
];

export function checkRules(config: PartialConfig): SettingProblem[] {
  return rules.flatMap(({ needs, check }) =>
    needs.every((section) => config[section] !== undefined) ? [...check(config as Config)] : [],
  );
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

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
