import { z } from 'zod';
import { duration } from '../values.ts';

export const rollout = z
  .union([
    z.literal(false),
    z.strictObject({
      clients: z.enum(['off', 'digest', 'named']).default('digest').meta({
        description:
          'What is kept of clients that were refused, or would have been. `digest`: their `User-Agent` (100 characters) and a keyed digest of the subject of the verified token, or of the address where there is none, which only tells them apart. `named`: the subject or the address itself. `off`: nothing, and they are not counted.',
      }),
      clientId: z
        .string()
        .regex(/^[^.\s]+(\.[^.\s]+)*$/, {
          error: 'must be the name of a claim, such as client_id or azp',
        })
        .optional()
        .meta({
          description:
            'Claim of a verified access token that names the application: `client_id` (RFC 9068), `azp` (OpenID Connect), `cid`. Its value then stands for the client in place of its subject or address, with `digest` too, as it names no person. Left out, or not in the token: as `clients` says.',
        }),
      keep: duration({ from: '7d', to: '90d' }).prefault('30d').meta({
        description: 'How long a row and reason, or a client, is kept that is not seen again.',
      }),
      interval: duration({ from: '1s', to: '30s' }).prefault('5s').meta({
        description: 'How often a process writes what it counted to the store: what a crash may lose.',
      }),
    }),
  ])
  .prefault({})
  .meta({
    description:
      'Counts of requests that were refused, or would have been in observe mode, by row, reason and client: what `shopward rollout` and the console tell before rows are enforced. `false`: not counted.',
  });
