import { isObject } from '../lib/json.ts';
import { cutText } from '../lib/text.ts';
import { configJsonSchema, type JsonSchema } from './json-schema.ts';
import { validateConfig } from './load.ts';
import type { Config } from './schema.ts';
import { bytesPerUnit, msPerUnit } from './values.ts';

/** A setting as it is in force, for people. */
export interface EffectiveSetting {
  /** `limits.requestBody`, `refreshTokens.endpoints[0].path` */
  readonly name: string;
  /** As it would be written in the file; a secret is masked. */
  readonly value: string;
  readonly isDefault: boolean;
  readonly isSecret: boolean;
  readonly description: string;
}

/** In place of a secret. */
const cut = '(secret, set)';
/** Characters of the longest value; longer ones are cut. */
const maxValueLength = 600;

/**
 * The configuration in force, one entry for each setting, in the order of the schema. The schema says what is secret
 * (`secret: true`, or the names of the secret parts where a value is parsed into a map); what it does not describe is not
 * shown. A secret that also occurs within another value is cut out there, too.
 */
export function effectiveSettings(config: Config): EffectiveSetting[] {
  const secrets = new Set<string>();
  collectSecrets(configJsonSchema(), config, secrets);
  const hide = (text: string) => {
    let shown = text;
    for (const secret of secrets) if (secret.length > 3) shown = shown.replaceAll(secret, cut);
    return cutText(shown, maxValueLength);
  };
  const defaults = new Map(
    settingsOf('', configJsonSchema(), defaultConfig()).map(({ name, value }) => [name, value]),
  );
  return settingsOf('', configJsonSchema(), config).map(({ value, ...setting }) => ({
    ...setting,
    value: setting.isSecret ? value : hide(value),
    isDefault: value === defaults.get(setting.name),
  }));
}

/** The configuration of a file that sets only what has no default. */
function defaultConfig(): unknown {
  return validateConfig({ auth: { keys: { jwks: 'https://shop.example/keys' } } }).config;
}

type Setting = Omit<EffectiveSetting, 'isDefault'>;

function settingsOf(name: string, schema: JsonSchema, value: unknown): Setting[] {
  if (value === undefined) return [];
  const about = { name, description: schema.description ?? '' };
  const { secret } = schema;
  if (secret === true) return [{ ...about, value: cut, isSecret: true }];
  if (Array.isArray(secret)) return [{ ...about, value: withoutParts(value, secret), isSecret: true }];
  const map = forms(schema).find(({ properties }) => properties !== undefined);
  if (isObject(value) && map?.properties !== undefined) {
    return Object.entries(map.properties).flatMap(([key, child]) =>
      settingsOf(name === '' ? key : `${name}.${key}`, child, value[key]),
    );
  }
  const list = forms(schema).find(({ items }) => items !== undefined);
  if (Array.isArray(value) && list?.items !== undefined && value.some(isObject)) {
    const { items } = list;
    const text = value.map((one) =>
      settingsOf('', items, one)
        .map(({ name, value }) => `${name} ${value}`)
        .join(', '),
    );
    return [{ ...about, value: text.join('; '), isSecret: false }];
  }
  return [{ ...about, value: valueText(schema, value), isSecret: false }];
}

/** A schema and its alternatives (`anyOf`), at any depth. */
function forms(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : [schema, ...schema.anyOf.flatMap(forms)];
}

/** A value that was parsed into a map, without its secret parts. */
function withoutParts(value: unknown, secret: readonly unknown[]): string {
  if (!isObject(value)) return cut;
  const parts = Object.entries(value).flatMap(([key, part]) => {
    if (part === undefined || part === false) return [];
    return secret.includes(key) ? `${key} ${cut}` : `${key} ${plain(part)}`;
  });
  return parts.join(', ');
}

function plain(value: unknown): string {
  if (Array.isArray(value)) return value.map(plain).join(' ');
  if (!isObject(value)) return String(value);
  const { host, port } = value;
  return host !== undefined && port !== undefined ? `${host}:${port}` : JSON.stringify(value);
}

function valueText(schema: JsonSchema, value: unknown): string {
  const text = unitText(schema, value);
  if (text !== undefined) return text;
  if (typeof value === 'string') return withoutUrlSecrets(value);
  if (Array.isArray(value))
    return value.length === 0 ? '(none)' : value.map((one) => valueText({}, one)).join(', ');
  if (!isObject(value)) return String(value);
  // A map of optional parts: those that are set.
  const parts = Object.entries(value).filter(([, part]) => part !== undefined && part !== false);
  return parts.map(([key, part]) => (part === true ? key : `${key} ${valueText({}, part)}`)).join(', ');
}

/** The largest first. */
const units: Readonly<Record<string, readonly (readonly [name: string, size: number])[]>> = {
  duration: Object.entries(msPerUnit).toReversed(),
  size: Object.entries(bytesPerUnit).toReversed(),
};

function unitText(schema: JsonSchema, value: unknown): string | undefined {
  const unit = forms(schema).find((form) => form.unit !== undefined)?.unit ?? '';
  const known = units[unit];
  if (known === undefined || typeof value !== 'number') return undefined;
  if (value === 0) return unit === 'size' ? '0B' : '0s';
  const [name, size] = known.find(([, size]) => value % size === 0) ?? (known.at(-1) as [string, number]);
  return `${value / size}${name}`;
}

/** A URL without userinfo and query, either of which may hold a key. */
function withoutUrlSecrets(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  return text.replace(/\/\/[^/@]*@/, `//${cut}@`).replace(/\?.*$/s, `?${cut}`);
}

/** Collects the texts that the schema calls secret. */
function collectSecrets(schema: JsonSchema, value: unknown, found: Set<string>): void {
  const { secret } = schema;
  if (secret === true && typeof value === 'string') found.add(value);
  if (Array.isArray(secret) && isObject(value)) {
    for (const key of secret)
      if (typeof value[String(key)] === 'string') found.add(String(value[String(key)]));
  }
  for (const { properties = {}, items } of forms(schema)) {
    if (isObject(value)) {
      for (const [key, child] of Object.entries(properties)) collectSecrets(child, value[key], found);
    }
    if (Array.isArray(value) && items !== undefined)
      for (const one of value) collectSecrets(items, one, found);
  }
}
