import { z } from 'zod';
import { configSchema } from './schema.ts';

/** The names and places that lead to a setting: `['auth', 'keys', 'files', 0]`. */
export type SettingPath = readonly (string | number)[];

/** The part of JSON Schema that the configuration uses. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly prefixItems?: readonly JsonSchema[];
  /** Ours: `duration` or `size`. */
  readonly unit?: string;
  /** Ours: the default when it is a reference. */
  readonly reference?: string;
  /** Ours: the value is never shown; or the names of those of its parts that are not, where it is read into a map. */
  readonly secret?: boolean | readonly string[];
  readonly [keyword: string]: unknown;
}

let known: JsonSchema | undefined;

/** The schema of what is written in the file (before durations and sizes are read), with our own keywords. */
export function configJsonSchema(): JsonSchema {
  known ??= z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema;
  return known;
}

/** The alternatives that the schema has at a setting; none where the schema does not know the setting. */
export function schemasAt(path: SettingPath): readonly JsonSchema[] {
  let schemas = alternatives(configJsonSchema());
  for (const step of path) {
    schemas = schemas.flatMap((schema) => {
      const child =
        typeof step === 'number' ? (schema.prefixItems?.[step] ?? schema.items) : ownProperty(schema, step);
      return child === undefined ? [] : alternatives(child);
    });
  }
  return schemas;
}

export function keysAt(path: SettingPath): readonly string[] {
  return schemasAt(path).flatMap(({ properties = {} }) => Object.keys(properties));
}

function alternatives(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(alternatives);
}

function ownProperty({ properties = {} }: JsonSchema, key: string): JsonSchema | undefined {
  return Object.hasOwn(properties, key) ? properties[key] : undefined;
}
