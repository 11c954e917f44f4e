import { z } from 'zod';
import { distinct, duration, pathTemplate } from '../values.ts';

const resource = z.strictObject({
  collection: pathTemplate().meta({ description: 'Path of the collection.' }),
  member: pathTemplate().meta({ description: "Path of one member: the collection's, and one parameter." }),
  methods: distinct(z.enum(['PATCH', 'DELETE', 'PUT', 'POST']))
    .min(1)
    .prefault(['PATCH', 'DELETE'])
    .meta({
      description:
        'Methods that require `If-Match` on a member. `POST`: on a member and on every path below it (`POST /carts/1/line-items`), for shops that change by POST; a POST of the collection still creates a member.',
    }),
  ifMatch: z.enum(['strict', 'lenient']).default('strict').meta({
    description: '`lenient` also accepts tags that were changed on their way: `W/"t"`, `t` and `"t-gzip"`.',
  }),
  openWrites: z.enum(['mark', 'lease']).default('mark').meta({
    description:
      'Applies to a write on or below a member that needs no `If-Match`, on a route that no row protects. `mark`: no other request waits for it, but it waits for writes with a tag; if the shop acts on it, it is marked as a change in the store, and the previous tag is no longer valid. `lease`: it takes the lease, as with a token; no update is lost, but anybody can keep the owner waiting. Use it for resources that guests write, such as guest carts.',
  }),
  freshFor: duration({ from: '0s', to: '1h' }).prefault('0s').meta({
    description:
      'How long a 304 may be answered without asking the shop. 0s: never. The shop is always asked if its `Vary` names a field other than Accept, Accept-Language, Accept-Encoding, Authorization, Content-Type, Host, Store and X-Agent-Authorization.',
  }),
  ignore: distinct(
    z
      .string()
      .regex(/^(\/([^~/]|~[01])*)+$/, { error: 'must be a JSON pointer such as /data/attributes/updatedAt' }),
  )
    .prefault([])
    .meta({
      description:
        'JSON pointers (RFC 6901) of members that may change although the state has not changed. An answer that is no JSON, or has more than 256 KiB or 256 levels, counts as a whole.',
    }),
});

export const entityTags = z
  .union([
    z.literal(false),
    z.strictObject({
      lease: duration({ from: '1s', to: '10m' }).prefault('15s').meta({
        description:
          'How long one write holds its resource at most. The shop must complete a write within `lease` less `sendBy` less 0.5s.',
      }),
      sendBy: duration({ from: '100ms' }).prefault('2s').meta({
        description: 'A write is sent to the shop within this time after its claim, or not at all.',
      }),
      wait: duration({ from: '0s' }).prefault('5s').meta({
        description: 'How long a second write waits for the first one. Then 503. At most `lease`.',
      }),
      resources: z
        .array(resource)
        .min(1)
        .prefault([{ collection: '/carts', member: '/carts/{cart_id}' }])
        .meta({ description: 'Resources with entity tags.' }),
    }),
  ])
  .prefault({})
  .meta({ description: 'Entity tags (RFC 9110 section 8.8.3) and preconditions. `false`: none.' });
