import { z } from 'zod';
import { duration } from '../values.ts';

export const rollout = z
  .union([
    z.literal(false),
    z.strictObject({
      clients: z.enum(['off', 'digest', 'named']).default('digest').meta({
        description:
          'What is stored about clients that were refused, or would have been. `digest`: the `User-Agent` (100 characters) and a keyed digest of the subject of the verified token, or of the address if there is none; the digest only distinguishes clients. `named`: the subject or the address itself. `off`: nothing, and clients are not counted.',
      }),
      clientId: z
        .string()
        .regex(/^[^.\s]+(\.[^.\s]+)*$/, {
          error: 'must be the name of a claim, such as client_id or azp',
        })
        .optional()
        .meta({
          description:
            'Claim of a verified access token that names the application: `client_id` (RFC 9068), `azp` (OpenID Connect), `cid`. The client is then shown by the value of this claim instead of subject or address, also with `digest`, because it names no person. Left out, or not in the token: as `clients` says.',
        }),
      keep: duration({ from: '7d', to: '90d' }).prefault('30d').meta({
        description: 'How long a row with a reason, or a client, is kept after it was last seen.',
      }),
      interval: duration({ from: '1s', to: '30s' }).prefault('5s').meta({
        description:
          'How often a process writes its counts to the store. A crash loses at most the counts of this time.',
      }),
    }),
  ])
  .prefault({})
  .meta({
    description:
      'Counts of requests that were refused, or would have been in observe mode, by row, reason and client. `shopward rollout` and the console show them. `false`: not counted.',
  });
