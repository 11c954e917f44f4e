import { isObject } from '../lib/json.ts';
import { configJsonSchema, type JsonSchema } from './json-schema.ts';
import { validateConfig } from './load.ts';
import type { Config } from './schema.ts';

/** A setting as it is in force, for people. */
export interface EffectiveSetting {
  /** `limits.requestBody`, `refreshTokens.endpoints[0].path` */
  readonly name: string;
  /** As it would be written; of a secret only whether there is one. */
  readonly value: string;
  readonly isDefault: boolean;
  readonly isSecret: boolean;
  readonly description: string;
}

/** What stands in place of a secret. */
const cut = '(secret, set)';
/** Longer values are cut: a page is no place to read a file. */
const maxValueLength = 600;

/**
 * The configuration in force, a line a setting, in the order of the schema. What is a secret is said by the schema
 * (`secret: true`, or the names of the parts that are secret where a value is read into a map), never guessed; what the
 * schema does not describe is not shown. A secret that stands in another value as well is cut there too.
 */
export function effectiveSettings(config: Config): EffectiveSetting[] {
  const secrets = new Set<string>();
  collectSecrets(configJsonSchema(), config, secrets);
  const hide = (text: string) => {
    let shown = text;
    for (const secret of secrets) if (secret.length > 3) shown = shown.replaceAll(secret, cut);
    return shown.length > maxValueLength ? `${shown.slice(0, maxValueLength)}…` : shown;
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

/** What is in force where the file says nothing but what has no default. */
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

/** A value and its forms, as far as `anyOf` goes. */
function forms(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : [schema, ...schema.anyOf.flatMap(forms)];
}

/** What a value read into a map holds beside its secret parts. */
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
  // Of several parts, of which each may be there: those that are, as they are written.
  const parts = Object.entries(value).filter(([, part]) => part !== undefined && part !== false);
  return parts.map(([key, part]) => (part === true ? key : `${key} ${valueText({}, part)}`)).join(', ');
}

const units: Readonly<Record<string, readonly (readonly [name: string, size: number])[]>> = {
  duration: [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
    ['ms', 1],
  ],
  size: [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
    ['B', 1],
  ],
};

function unitText(schema: JsonSchema, value: unknown): string | undefined {
  const unit = forms(schema).find((form) => form.unit !== undefined)?.unit ?? '';
  const known = units[unit];
  if (known === undefined || typeof value !== 'number') return undefined;
  if (value === 0) return unit === 'size' ? '0B' : '0s';
  const [name, size] = known.find(([, size]) => value % size === 0) ?? (known.at(-1) as [string, number]);
  return `${value / size}${name}`;
}

/** The query of a URL may hold a key, and so may its user. */
function withoutUrlSecrets(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  return text.replace(/\/\/[^/@]*@/, `//${cut}@`).replace(/\?.*$/s, `?${cut}`);
}

/** Texts that the schema calls secret. */
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
