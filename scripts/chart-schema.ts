import { editorSchema } from './editor-schema.ts';

const text = { type: 'string' };
const name = { type: 'string', minLength: 1 };
const flag = { type: 'boolean' };
const count = { type: 'integer', minimum: 1 };
const texts = { type: 'object', additionalProperties: text };
const anything = { type: 'object' };

/** No other keys are allowed, so that a misspelled value is not ignored silently. */
function map(properties: Readonly<Record<string, object>>, required: readonly string[] = []): object {
  return { type: 'object', properties, required, additionalProperties: false };
}

function list(items: object): object {
  return { type: 'array', items };
}

/** Keywords that differ between dialects of schemas or regular expressions, or that only editors read. */
const leftOut = ['$schema', 'pattern', 'format', 'prefixItems', 'description', 'default', 'examples'];

/** Keeps keys, types and enumerations; `shopward check` checks the values. Members of `properties` may have any name. */
function structureOf(schema: unknown, isNames = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => structureOf(each));
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key]) => isNames || !leftOut.includes(key));
  return Object.fromEntries(
    kept.map(([key, value]) => [key, structureOf(value, !isNames && key === 'properties')]),
  );
}

/**
 * Schema of the Helm chart's values, `config` included: helm refuses a configuration with an unknown key. All versions of
 * helm read draft 7.
 */
export function chartSchema(): object {
  const properties = {
    global: anything,
    image: map(
      {
        repository: name,
        tag: text,
        digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      },
      ['repository'],
    ),
    imagePullSecrets: list(map({ name })),
    replicas: count,
    autoscaling: map({ enabled: flag, maxReplicas: count, cpu: count }),
    config: structureOf(editorSchema()) as object,
    protectedResources: map({ text, configMap: text }),
    secretName: name,
    resources: map({ requests: anything, limits: anything }),
    service: map({ port: { type: 'integer', minimum: 1, maximum: 65535 }, annotations: texts }),
    podAnnotations: texts,
    nodeSelector: texts,
    tolerations: list(anything),
    env: list(anything),
    podDisruptionBudget: map({ enabled: flag, minAvailable: { type: ['integer', 'string'] } }),
    extraVolumes: list(anything),
    extraVolumeMounts: list(anything),
    ingress: map({
      enabled: flag,
      className: text,
      annotations: texts,
      hosts: list(text),
      tls: list(anything),
    }),
    networkPolicy: map({ enabled: flag, clients: list(anything), monitoring: list(anything), shop: texts }),
    serviceMonitor: map({ enabled: flag, interval: name, labels: texts }),
    prometheusRule: map({ enabled: flag, labels: texts, runbooks: name }),
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart shopward',
    ...map(properties, ['image', 'config', 'secretName']),
  };
}
