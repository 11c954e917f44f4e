import { z } from 'zod';
import { duration, onByDefault, pathTemplateOrBelow } from '../values.ts';

const requests = z.int().min(1).max(1_000_000);
const per = duration({ from: '1s', to: '1d' });
const mode = z.enum(['observe', 'enforce']).default('observe');

const row = z.strictObject({
  method: z.enum(['ANY', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE']).meta({
    description: 'Method; GET covers HEAD, `ANY` all but OPTIONS.',
  }),
  path: pathTemplateOrBelow.meta({
    description: 'Path, as a row of the protected list has it; `/**` is every path.',
  }),
  requests: requests.meta({ description: 'As `rateLimits.tokenEndpoints.requests`.' }),
  per: per.meta({ description: 'As `rateLimits.tokenEndpoints.per`.' }),
  mode: mode.meta({ description: 'As `rateLimits.tokenEndpoints.mode`.' }),
});

export const rateLimits = onByDefault({
  tokenEndpoints: onByDefault({
    requests: requests.default(30).meta({
      description: 'Requests of one client that pass in the time `per`.',
    }),
    per: per.prefault('1m').meta({
      description: 'Time after which a client that used all its `requests` has all of them again.',
    }),
    mode: mode.meta({
      description: '`observe`: a request above the limit is logged and counted. `enforce`: it gets 429.',
    }),
  }).meta({
    description:
      'The limit of each endpoint of `refreshTokens.endpoints` that issues or refreshes tokens. `false`: none.',
  }),
  rows: z.array(row).default([]).meta({
    description:
      'Limits of further routes; one for a token endpoint replaces its limit in `tokenEndpoints`. Answers of shopward itself are not counted.',
  }),
}).meta({ description: '[How many requests](rate-limits.md) one client may send. `false`: no limits.' });
