import { z } from 'zod';
import { defaultAdmin } from '../defaults.ts';
import { duration, listenHost, onByDefault, port, section, text, upstreamUrl } from '../values.ts';

export const admin = onByDefault({
  host: listenHost.default(defaultAdmin.host).meta({
    description:
      'Address of the admin port. If it is not a loopback address, `token` and `hosts` are required.',
  }),
  port: port.default(defaultAdmin.port).meta({ description: 'Its port; 0 takes a free one.' }),
  token: text
    .regex(/^[\x21-\x7e]+$/, { error: 'must be of visible ASCII characters' })
    .optional()
    .meta({
      description:
        'Bearer token for metrics, the API and the reasons of `/readyz`. Take it from a file or a variable.',
    }),
  hosts: z.array(listenHost).prefault([]).meta({
    description:
      "Names, besides loopback's own, by which the admin port may be addressed (the `Host` field).",
  }),
}).meta({ description: 'Health, metrics and console, on a port of their own. `false`: none of them.' });

export const workers = z
  .union([z.int().min(1).max(256), z.literal('auto')])
  .default(1)
  .meta({
    description:
      'Number of processes that serve; `auto`: one for each core. More than one needs a shared store.',
  });

export const log = section({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .meta({ description: 'Least severe level that is written.' }),
}).meta({
  description: 'The log on standard output: one line of JSON for each event; on a terminal readable text.',
});

export const telemetry = section({
  otlp: z
    .strictObject({
      endpoint: upstreamUrl.meta({
        description:
          'OpenTelemetry collector, such as `http://collector:4318`: gets spans and metrics, as OTLP over HTTP.',
      }),
      sampleRatio: z.number().min(0).max(1).default(1).meta({
        description: 'Share of requests that are traced, 0 to 1, unless their `traceparent` decides it.',
      }),
    })
    .optional()
    .meta({ description: 'Needs optional packages; `shopward check` names those that are missing.' }),
}).meta({ description: 'What is sent to others about requests. Default: nothing.' });

export const rollout = onByDefault({
  keep: duration({ from: '7d', to: '90d' }).prefault('30d').meta({
    description: 'How long the counts of a refusal or of a client are kept after it was last seen.',
  }),
}).meta({
  description:
    'Counts refusals, enforced and observed, by row, reason and client, for `shopward rollout` and the console. `false`: not counted.',
});
