const row = '^(GET|POST|PUT|PATCH|DELETE|ANY) /\\S*$';

/** The schema that editors use for the protected list. What a row means is checked by its own reader. */
export const protectedListSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Protected list of shopward',
  type: 'object',
  properties: {
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
                  description: 'Scopes that an access token must carry, all of them; otherwise 403.',
                  type: 'array',
                  minItems: 1,
                  uniqueItems: true,
                  items: { type: 'string', minLength: 1 },
                },
                observe: {
                  description: 'Log and count what this row would refuse, and forward all the same.',
                  type: 'boolean',
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
