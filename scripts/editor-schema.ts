import { configJsonSchema, type JsonSchema } from '../src/config/json-schema.ts';

/** A value with a reference such as `${PORT}`, whose type is known only when the reference is replaced. */
const referenceValue = { type: 'string', pattern: '\\$\\{' };

/** The schema for editors, which also accepts a reference in place of any single value. */
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

/** A list may also be a single reference whose value has commas between the items. */
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

const row = '^(GET|POST|PUT|PATCH|DELETE|ANY) /\\S*$';

const location = {
  type: 'string',
  pattern: '^(header|(cookie|query|subprotocol):[A-Za-z0-9_-]{1,64})$',
} as const;
const tokenIn = {
  description:
    'Where the token is: header (Authorization, the default), cookie:NAME, query:NAME, or subprotocol:NAME of a WebSocket (NAME, <token>). Of several locations a request may use one.',
  anyOf: [location, { type: 'array', minItems: 1, uniqueItems: true, items: location }],
} as const;

const scopeList = {
  type: 'array',
  minItems: 1,
  uniqueItems: true,
  items: { type: 'string', minLength: 1 },
} as const;

/** The schema for editors of the protected list. The list's own parser checks the meaning of rows. */
export const protectedListSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Protected list of shopward',
  type: 'object',
  properties: {
    tokenIn,
    groups: {
      description: 'Rows by group. The order and the names of groups are for people.',
      type: 'object',
      minProperties: 1,
      additionalProperties: {
        type: 'array',
        minItems: 1,
        items: {
          anyOf: [
            {
              description:
                'METHOD or ANY, a space, and a path of literals and {name}s, perhaps with a last **.',
              type: 'string',
              pattern: row,
            },
            {
              type: 'object',
              properties: {
                match: { description: 'METHOD or ANY, a space, and a path.', type: 'string', pattern: row },
                scopes: {
                  description:
                    'Scopes that an access token needs: all of a list, or one of any; otherwise 403.',
                  anyOf: [
                    scopeList,
                    {
                      type: 'object',
                      properties: { any: scopeList },
                      required: ['any'],
                      additionalProperties: false,
                    },
                  ],
                },
                require: {
                  description:
                    'What the claims must say: a parameter of the path and the claim that it must equal, or a claim and its values; otherwise 403.',
                  type: 'object',
                  minProperties: 1,
                },
                tokenIn,
                observe: {
                  description: 'Log and count what this row would refuse, and forward all the same.',
                  type: 'boolean',
                },
                open: {
                  description:
                    'POST rows only, without other keys: POST needs no token here, though PATCH, PUT or DELETE does.',
                  const: true,
                },
                credentials: {
                  description: 'HTTP Basic and the cookies of auth.sessionCookies pass to the shop unjudged.',
                  const: 'shop',
                },
              },
              required: ['match'],
              additionalProperties: false,
            },
          ],
        },
      },
    },
    complete: { description: 'Always the last key: a list that was cut off lacks it.', const: true },
  },
  required: ['groups', 'complete'],
  additionalProperties: false,
} as const;
