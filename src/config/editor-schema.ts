import { configJsonSchema, type JsonSchema } from './json-schema.ts';

/** A value that is, or holds, a reference such as `${PORT}`: its type is only known when it is replaced. */
const referenceValue = { type: 'string', pattern: '\\$\\{' };

/** The schema that editors use: also a reference is right wherever one value stands. */
export function editorSchema(): object {
  const { $schema, ...schema } = configJsonSchema();
  return {
    $schema,
    title: 'Configuration of shopward',
    description: 'Durations and sizes are written with a unit; see docs/configuration.md.',
    ...withReferences(schema),
  };
}

function withReferences({ unit: _, reference, ...schema }: JsonSchema): JsonSchema {
  const shown = reference === undefined ? schema : { ...schema, default: reference };
  if (shown.properties !== undefined) {
    const properties = Object.entries(shown.properties).map(([key, value]) => [key, withReferences(value)]);
    return { ...shown, properties: Object.fromEntries(properties) };
  }
  if (shown.anyOf !== undefined) {
    const forms = shown.anyOf.map((form) => (isScalar(form) ? form : withReferences(form)));
    const scalars = forms.some(isScalar) ? [referenceValue] : [];
    return { ...shown, anyOf: [...forms, ...scalars] };
  }
  if (shown.items !== undefined || shown.prefixItems !== undefined) return withItems(shown);
  return isFreeText(shown) ? shown : orReference(shown);
}

/** A list may be one reference, too: commas separate its items. */
function withItems(schema: JsonSchema): JsonSchema {
  const items = schema.items === undefined ? {} : { items: withReferences(schema.items) };
  const prefixItems =
    schema.prefixItems === undefined ? {} : { prefixItems: schema.prefixItems.map(withReferences) };
  return orReference({ ...schema, ...items, ...prefixItems });
}

function orReference({ description, default: fallback, ...schema }: JsonSchema): JsonSchema {
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [schema, referenceValue],
  };
}

function isScalar({ type, const: only }: JsonSchema): boolean {
  return only !== undefined || (type !== undefined && type !== 'object' && type !== 'array');
}

function isFreeText({ type, pattern, enum: choices, const: only }: JsonSchema): boolean {
  return type === 'string' && pattern === undefined && choices === undefined && only === undefined;
}
