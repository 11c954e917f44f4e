import { z } from 'zod';
import { configSchema } from './schema.ts';

/** Keys and indexes that lead to a setting: `['auth', 'keys', 'files', 0]`. */
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
  /** shopward's own keyword: `duration` or `size`. */
  readonly unit?: string;
  /** shopward's own keyword: a default with a reference. */
  readonly reference?: string;
  readonly [keyword: string]: unknown;
}

let known: JsonSchema | undefined;

/** The schema of the file's own values, before durations and sizes are parsed. Exported for its tests. */
export function configJsonSchema(): JsonSchema {
  known ??= z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema;
  return known;
}

/** The alternatives of the schema for a setting; none for an unknown one. */
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
