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
