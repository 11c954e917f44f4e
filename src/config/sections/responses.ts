import { z } from 'zod';
import { errorFormats, type RejectionName, rejectionNames, rejectionTable } from '../../http/rejection.ts';
import { section, text } from '../values.ts';

const responseField = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, { error: 'must be the name of a field that pages may read' });

export const cors = z
  .strictObject({
    origins: z
      .array(
        z.string().regex(/^(?:\*|https?:\/\/[a-z0-9.[\]:_-]+)$/, {
          error:
            'must be an origin as browsers send it (https://shop.example, in lower case, without a path), or * alone',
        }),
      )
      .prefault([])
      .meta({
        description:
          'Origins whose pages may call the API. `*` alone: every origin, without cookies. Empty: preflights go to the shop.',
      }),
    credentials: z.boolean().optional().meta({
      description: 'Whether pages may send cookies. Left out: yes for named origins, no with `*`.',
    }),
    exposedFields: z
      .array(responseField)
      .prefault(['ETag', 'Location', 'WWW-Authenticate', 'Retry-After', 'X-Request-Id'])
      .meta({
        description:
          "Response fields that pages may read, besides those of the shop's `Access-Control-Expose-Headers`.",
      }),
  })
  .check((context) => {
    const { origins, credentials } = context.value;
    if (!origins.includes('*')) return;
    const refuse = (message: string, key: string) =>
      context.issues.push({ code: 'custom', message, path: [key], input: context.value });
    if (origins.length > 1) refuse('has * and other origins: write * alone, or name each origin', 'origins');
    if (credentials === true)
      refuse(
        'must not be true with the origin *: every page could act with the cookies of its visitors',
        'credentials',
      );
  })
  .prefault({})
  .meta({
    description:
      'Cross-origin requests (CORS). With `origins`, shopward answers preflights and sets the fields of responses.',
  });

const override = z
  .strictObject({
    status: z.int().min(400).max(599).optional().meta({ description: 'HTTP status.' }),
    code: text.optional().meta({ description: 'Application error code.' }),
    detail: text.optional().meta({ description: 'Human-readable text.' }),
  })
  .optional();

const shape = Object.fromEntries(
  rejectionNames.map((name) => {
    const { status, detail } = rejectionTable[name];
    return [name, override.meta({ description: `${status}: ${detail}` })];
  }),
) as Record<RejectionName, typeof override>;

export const errors = section({
  format: z.enum(errorFormats).default('jsonapi').meta({
    description:
      '[Format of refusals](clients.md#a-refusal). Status, `code` and `detail` are the same in all.',
  }),
}).meta({ description: 'How refusals are written.' });

export const rejections = section(shape).meta({
  description: 'Another status, code or detail for a refusal: `{ access-token-missing: { status: 403 } }`.',
});
