import { z } from 'zod';
import { distinct, duration, pathTemplate } from '../values.ts';

const resource = z.strictObject({
  collection: pathTemplate().meta({ description: 'Path of the collection.' }),
  member: pathTemplate().meta({ description: "Path of one member: the collection's, and one parameter." }),
  methods: distinct(z.enum(['PATCH', 'DELETE', 'PUT']))
    .min(1)
    .prefault(['PATCH', 'DELETE'])
    .meta({ description: 'Methods that require `If-Match`.' }),
  ifMatch: z.enum(['strict', 'lenient']).default('strict').meta({
    description:
      '`lenient` also takes tags that were weakened or unquoted on the way: `W/"t"`, `t` and `"t-gzip"`.',
  }),
  openWrites: z.enum(['mark', 'lease']).default('mark').meta({
    description:
      'What a write on or below a member does that needs no `If-Match`, on a route that no row protects. `mark`: nobody waits for it, and it waits for writes with a tag; if the shop acted on it, the tag of before is dead. `lease`: it takes the lease as with a token, so that no update is lost, and anybody may keep the owner waiting; for resources that guests write, such as guest carts.',
  }),
  freshFor: duration({ from: '0s', to: '1h' }).prefault('0s').meta({
    description:
      'How long a 304 may be answered without asking the shop. 0s: never. The shop is asked all the same where its `Vary` names a field beyond Accept, Accept-Language, Accept-Encoding, Authorization, Content-Type, Host, Store and X-Agent-Authorization.',
  }),
  ignore: distinct(
    z
      .string()
      .regex(/^(\/([^~/]|~[01])*)+$/, { error: 'must be a JSON pointer such as /data/attributes/updatedAt' }),
  )
    .prefault([])
    .meta({
      description:
        'JSON pointers (RFC 6901) of what may change without the state having changed. A document is parsed for this: one of more than 256 KiB, or nested deeper than 256 levels, passes without a tag then.',
    }),
});

export const entityTags = z
  .union([
    z.literal(false),
    z.strictObject({
      lease: duration({ from: '1s', to: '10m' }).prefault('15s').meta({
        description:
          'How long one write holds its resource. The shop must have acted on a write within `lease` less `sendBy` less 0.5s.',
      }),
      sendBy: duration({ from: '100ms' }).prefault('2s').meta({
        description: 'Within this time after its claim a write has left for the shop, or is not sent.',
      }),
      wait: duration({ from: '0s' }).prefault('5s').meta({
        description: 'How long a second writer waits for the first one; then 503. At most `lease`.',
      }),
      resources: z
        .array(resource)
        .min(1)
        .prefault([{ collection: '/carts', member: '/carts/{cart_id}' }])
        .meta({ description: 'Resources that carry entity tags.' }),
    }),
  ])
  .prefault({})
  .meta({ description: 'Entity tags (RFC 9110 section 8.8.3) and preconditions. `false`: none.' });
