import { isObject } from '../lib/json.ts';
import { cutText } from '../lib/text.ts';
import { configJsonSchema, type JsonSchema } from './json-schema.ts';

/** A setting as it is in force, for people. */
interface EffectiveSetting {
  /** `limits.requestBody`, `refreshTokens.endpoints` */
  readonly name: string;
  /** As it is written in the file, with references replaced; a secret is masked. */
  readonly value: string;
  readonly isDefault: boolean;
  readonly isSecret: boolean;
  readonly description: string;
}

/** In place of a secret. */
const masked = '(secret, set)';
/** Characters of the longest value; longer ones are cut. */
const maxValueLength = 600;

/**
 * The settings in force, in the order of the schema: those of the file, and the defaults of the others. Values that the schema
 * calls `secret`, and what a URL has besides its address, are masked, also where they occur within another value.
 * `written`: the data of a valid configuration, before it is parsed.
 */
export function effectiveSettings(written: unknown): EffectiveSetting[] {
  const secrets = new Set<string>();
  const settings = settingsOf('', configJsonSchema(), written, secrets);
  const hide = (text: string) => {
    let shown = text;
    for (const secret of secrets) if (secret.length > 3) shown = shown.replaceAll(secret, masked);
    return cutText(shown, maxValueLength);
  };
  return settings.map((setting) => ({ ...setting, value: hide(setting.value) }));
}

function settingsOf(
  name: string,
  schema: JsonSchema,
  written: unknown,
  secrets: Set<string>,
): EffectiveSetting[] {
  const value = written ?? schema.default;
  if (value === undefined) return [];
  const { properties } = forms(schema).find((form) => form.properties !== undefined) ?? {};
  if (isObject(value) && properties !== undefined) {
    return Object.entries(properties).flatMap(([key, child]) =>
      settingsOf(name === '' ? key : `${name}.${key}`, child, value[key], secrets),
    );
  }
  const isSecret = schema.secret !== undefined;
  if (schema.secret === true) secrets.add(String(value));
  const shown = schema.secret === true ? masked : textOf(schema, value, secrets);
  const isDefault = shown === textOf(schema, schema.default, secrets);
  return [{ name, value: shown, isDefault, isSecret, description: schema.description ?? '' }];
}

/** A schema and its alternatives (`anyOf`), at any depth. */
function forms(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : [schema, ...schema.anyOf.flatMap(forms)];
}

function textOf(schema: JsonSchema, value: unknown, secrets: Set<string>): string {
  if (!Array.isArray(value)) return withoutUrlSecrets(String(value), secrets);
  const { items = {} } = forms(schema).find((form) => form.items !== undefined) ?? {};
  if (!value.some(isObject)) {
    return value.length === 0 ? '(none)' : value.map((one) => textOf(items, one, secrets)).join(', ');
  }
  const entries = value.map((one) => settingsOf('', items, one, secrets));
  return entries
    .map((settings) => settings.map(({ name, value }) => `${name} ${value}`).join(', '))
    .join('; ');
}

const url = /^([a-z][a-z0-9+.-]*:\/\/)([^?]*@)?([^?]*)(\?.*)?$/is;

/** A URL without userinfo and query, either of which may hold a key. */
function withoutUrlSecrets(text: string, secrets: Set<string>): string {
  const [, scheme, userinfo, address, query] = url.exec(text) ?? [];
  if (scheme === undefined) return text;
  for (const part of userinfo?.slice(0, -1).split(':') ?? []) secrets.add(part);
  return `${scheme}${userinfo ? `${masked}@` : ''}${address}${query ? `?${masked}` : ''}`;
}
