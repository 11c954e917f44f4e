import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  PrometheusRule,
  ServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Service } from 'kubernetes-models/v1';
import { afterAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { findMain } from '../../harness/built-shopward.ts';
import { findHelm } from '../../harness/helm.ts';

/** The Helm chart as helm renders it, and the plain manifests, which are the output of one such rendering. */
const root = path.resolve(import.meta.dirname, '../../..');
const chart = path.join(root, 'deploy/helm/shopward');
const list = path.join(root, 'config/protected-resources.yaml');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-chart-'));
afterAll(() => rmSync(folder, { recursive: true }));
const helm = findHelm();

const models = {
  ...{ ConfigMap, Deployment, HorizontalPodAutoscaler, Ingress, NetworkPolicy },
  ...{ PodDisruptionBudget, PrometheusRule, Service, ServiceMonitor },
};
type Kind = keyof typeof models;
interface Manifest {
  readonly apiVersion: string;
  readonly kind: Kind;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: the schema of each kind checks its fields
  readonly [part: string]: any;
}

function template(...args: string[]): string {
  return execFileSync(helm ?? '', ['template', 'shopward', chart, ...args], { encoding: 'utf8' });
}

const withList = ['--set-file', `protectedResources.text=${list}`];
/** Enables every object of the chart. */
const everything = [...withList, '-f', path.join(root, 'deploy/helm/example-values.yaml')];

function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() ?? [];
  });
}

function only(manifests: readonly Manifest[], kind: Kind, name = 'shopward'): Manifest {
  const found = manifests.filter((one) => one.kind === kind && one.metadata.name === name);
  expect(found, `${kind} ${name}`).toHaveLength(1);
  return found[0] as Manifest;
}

/** Returns the output of `shopward check` for the files of a pod: the ConfigMaps and the Secret as folders. */
function check(manifests: readonly Manifest[]): string {
  const secrets = path.join(folder, 'secrets');
  mkdirSync(secrets, { recursive: true });
  writeFileSync(path.join(secrets, 'admin-token'), 'x'.repeat(64));
  writeFileSync(path.join(secrets, 'redis-url'), 'redis://:secret@redis:6379');
  const { volumeMounts } = only(manifests, 'Deployment').spec.template.spec.containers[0];
  const mounts: string[] = volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
  expect(mounts.slice(0, 2)).toEqual(['/etc/shopward', '/run/secrets/shopward']);
  writeFileSync(path.join(folder, 'urls.csv'), 'url,entityType,entityId\n/en/shoe,abstract-products,1\n');
  const files: Record<string, string> = Object.assign(
    { 'protected-resources.yaml': readFileSync(list, 'utf8') },
    ...manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ data }) => data),
  );
  for (const [name, text] of Object.entries(files)) {
    const here = text.replaceAll('/run/secrets/shopward', secrets).replaceAll(mounts[2] ?? '\0', folder);
    writeFileSync(path.join(folder, name), here);
  }
  const args = [findMain(), 'check', '--offline', '--config', path.join(folder, 'shopward.yaml')];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
  return stdout + stderr;
}

describe.skipIf(helm === undefined)('the chart, by helm', () => {
  test('is linted without a warning', () => {
    const out = execFileSync(helm ?? '', ['lint', '--strict', chart, ...everything], { encoding: 'utf8' });
    expect(out).toContain('0 chart(s) failed');
  });

  test('each object is valid by the schema of its kind', () => {
    const manifests = manifestsOf(template(...everything));
    expect(new Set(manifests.map(({ kind }) => kind))).toEqual(new Set(Object.keys(models)));
    for (const manifest of manifests) {
      const object = new models[manifest.kind](manifest as never);
      expect(() => object.validate(), `${manifest.kind} ${manifest.metadata.name}`).not.toThrow();
    }
  });

  test('selectors match the pods, and each named port, Secret and ConfigMap exists', () => {
    const manifests = manifestsOf(template(...everything));
    const { template: pod, selector } = only(manifests, 'Deployment').spec;
    const { labels } = pod.metadata;
    expect(labels).toMatchObject(selector.matchLabels);
    for (const { spec } of manifests.filter(({ kind }) => kind === 'Service')) {
      expect(labels).toMatchObject(spec.selector);
    }
    expect(labels).toMatchObject(only(manifests, 'NetworkPolicy').spec.podSelector.matchLabels);
    expect(labels).toMatchObject(only(manifests, 'PodDisruptionBudget').spec.selector.matchLabels);
    const [monitored] = only(manifests, 'ServiceMonitor').spec.endpoints;
    const admin = only(manifests, 'Service', 'shopward-admin');
    expect(admin.metadata.labels).toMatchObject(only(manifests, 'ServiceMonitor').spec.selector.matchLabels);
    expect(admin.spec.ports.map(({ name }: { name: string }) => name)).toContain(monitored.port);
    const ports = pod.spec.containers[0].ports.map(({ name }: { name: string }) => name);
    expect(ports).toEqual(['http', 'admin']);
    const [config, secret] = pod.spec.volumes;
    expect(
      config.projected.sources.map((source: { configMap: { name: string } }) => source.configMap.name),
    ).toEqual(manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name));
    expect(secret.secret.secretName).toBe(monitored.authorization.credentials.name);
  });

  test('runbook_url of each alert starts with prometheusRule.runbooks', () => {
    const enabled = [...withList, '--set', 'prometheusRule.enabled=true'];
    const urlsOf = (...more: string[]) =>
      only(manifestsOf(template(...enabled, ...more)), 'PrometheusRule').spec.groups[0].rules.flatMap(
        ({ annotations }: { annotations?: { runbook_url: string } }) => annotations?.runbook_url ?? [],
      );
    expect(urlsOf()).toContain('docs/operations.md#shopwarddown');
    const moved = urlsOf('--set', 'prometheusRule.runbooks=https://wiki.example/shopward');
    expect(moved).toEqual(
      urlsOf().map((url: string) => url.replace('docs/operations.md', 'https://wiki.example/shopward')),
    );
  });

  test('pods drop all privileges, and request more memory than was measured', () => {
    const { spec } = only(manifestsOf(template(...withList)), 'Deployment').spec.template;
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true },
    });
    const [{ securityContext, resources, livenessProbe, readinessProbe }] = spec.containers;
    expect(securityContext).toEqual({
      ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, privileged: false },
      capabilities: { drop: ['ALL'] },
    });
    expect([livenessProbe.httpGet.path, readinessProbe.httpGet.path]).toEqual(['/livez', '/readyz']);
    const { figures } = JSON.parse(read('results/sizing.json')) as { figures: [string, string][] };
    const measured = Number.parseInt(figures.find(([name]) => name === 'at the end')?.[1] ?? '', 10);
    expect(Number(measured)).toBeGreaterThan(0);
    expect(Number.parseInt(resources.requests.memory, 10)).toBeGreaterThan(Number(measured) * 1.25);
    expect(Number.parseInt(resources.limits.memory, 10)).toBeGreaterThan(Number(measured) * 2);
  });

  test.each([
    ['the defaults', withList],
    ['the example', everything],
  ])('configuration and list that %s render pass shopward check', (_, args) => {
    expect(check(manifestsOf(template(...args)))).toContain('checked ');
  });

  test('the Ingress sends all paths of the host to the http port, and extra volumes are mounted', () => {
    const manifests = manifestsOf(template(...everything));
    const { ingressClassName, rules, tls } = only(manifests, 'Ingress').spec;
    const { metadata, spec } = only(manifests, 'Service');
    const service = { name: metadata.name, port: { name: spec.ports[0].name } };
    const paths = [{ path: '/', pathType: 'Prefix', backend: { service } }];
    expect(spec.ports[0].targetPort).toBe('http');
    expect([ingressClassName, rules, tls[0].hosts]).toEqual([
      'nginx',
      [{ host: 'api.shop.example', http: { paths } }],
      ['api.shop.example'],
    ]);
    const pod = only(manifests, 'Deployment').spec.template.spec;
    const namesOf = (list: readonly { name: string }[]) => list.map(({ name }) => name);
    expect(namesOf(pod.volumes)).toEqual(['config', 'secrets', 'mapping']);
    expect(namesOf(pod.containers[0].volumeMounts)).toEqual(namesOf(pod.volumes));
  });

  test('by default it has no NetworkPolicy and no Ingress', () => {
    const kinds = manifestsOf(template(...withList)).map(({ kind }) => kind);
    expect(kinds).not.toContain('NetworkPolicy');
    expect(kinds).not.toContain('Ingress');
  });

  test.each([
    ['no list', [], /which requests need a token/],
    ['a misspelled value', [...withList, '--set', 'replica=3'], /replica/],
    ['a misspelled key of the configuration', [...withList, '--set', 'config.upstreem.url=x'], /upstreem/],
    ['replicas without a store', [...withList, '--set', 'config.store.url=memory'], /shared store/],
  ])('helm template fails for %s', (_, args, text) => {
    const { status, stderr } = spawnSync(helm ?? '', ['template', 'shopward', chart, ...args], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(text);
    expect(status).not.toBe(0);
  });

  test('names contain the release name, and one replica needs no shared store', () => {
    const single = ['--set', 'replicas=1,autoscaling.enabled=false,config.store.url=memory'];
    const text = execFileSync(helm ?? '', ['template', 'outlet', chart, ...withList, ...single], {
      encoding: 'utf8',
    });
    const manifests = manifestsOf(text);
    for (const { metadata } of manifests) expect(metadata.name).toContain('outlet-shopward');
    expect(only(manifests, 'Deployment', 'outlet-shopward').spec.replicas).toBe(1);
  });

  /** `npx vitest run test/end-to-end/deploy/chart.test.ts -u` writes the file. */
  test('the plain manifests are up to date with the chart', async () => {
    const rendered = template('--set', 'protectedResources.configMap=shopward-list');
    await expect(plainHead + rendered).toMatchFileSnapshot(
      path.join(root, 'deploy/kubernetes/shopward.yaml'),
    );
  });
});

const plainHead = `# shopward in a cluster without Helm: two replicas over one Redis, in front of the Service \`shop\`.
#   kubectl create configmap shopward-list --from-file=config/protected-resources.yaml
#   kubectl create secret generic shopward-secrets --from-literal=redis-url='redis://:PASSWORD@redis:6379' \\
#     --from-literal=admin-token="$(openssl rand -hex 32)"
#   kubectl apply -f deploy/kubernetes/shopward.yaml
# The chart in deploy/helm/shopward renders this file: edit the chart.
`;

test('the plain configuration passes shopward check', () => {
  expect(check(manifestsOf(read('deploy/kubernetes/shopward.yaml')))).toContain('checked ');
});

test('the chart has the version of the package and the rules of deploy/prometheus', async () => {
  const { version } = JSON.parse(read('package.json'));
  expect(parse(read('deploy/helm/shopward/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  await expect(read('deploy/prometheus/shopward.rules.yaml')).toMatchFileSnapshot(
    path.join(chart, 'files/shopward.rules.yaml'),
  );
});
