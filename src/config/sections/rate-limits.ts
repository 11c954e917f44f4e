import { z } from 'zod';
import { duration, pathTemplateOrBelow } from '../values.ts';

const requests = z.int().min(1).max(1_000_000).meta({
  description: 'Requests of one client that pass in the time `per`, all at once or one after the other.',
});
const per = duration({ from: '1s', to: '1d' }).meta({
  description: 'Time after which a client that used all its `requests` has all of them again.',
});
const mode = z.enum(['observe', 'enforce']).default('observe').meta({
  description:
    '`observe`: a request above the limit is logged and counted, and passes. `enforce`: it gets 429.',
});

export const rateLimits = z
  .union([
    z.literal(false),
    z.strictObject({
      tokenEndpoints: z
        .union([
          z.literal(false),
          z.strictObject({
            requests: requests.default(30),
            per: per.prefault('1m'),
            mode,
          }),
        ])
        .prefault({})
        .meta({
          description:
            'The limit of each endpoint of `refreshTokens.endpoints` that issues or refreshes tokens. `false`: none.',
        }),
      rows: z
        .array(
          z.strictObject({
            method: z.enum(['ANY', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE']).meta({
              description: 'Method; GET covers HEAD, `ANY` all but OPTIONS.',
            }),
            path: pathTemplateOrBelow().meta({
              description: 'Path, as a row of the protected list has it; `/**` is every path.',
            }),
            requests,
            per,
            mode,
          }),
        )
        .default([])
        .meta({
          description:
            'Limits of further routes; one for a token endpoint replaces `tokenEndpoints`. A request must pass all that match. Answers of shopward itself are not counted.',
        }),
    }),
  ])
  .prefault({})
  .meta({
    description:
      'How many requests one client may send, by a token bucket in the store; while the store is away, all pass. A client is the subject of the token, else an address (as in `limits.clientShare`). Name balancers in `trustedProxies`, or all their clients count as one. `false`: no limits.',
  });
