import { z } from 'zod';
import { duration, onByDefault, pathTemplate } from '../values.ts';

const resource = z.strictObject({
  collection: pathTemplate.meta({ description: 'Path of the collection.' }),
  member: pathTemplate.meta({ description: "Path of one member: the collection's, and one parameter." }),
  methods: z
    .array(z.enum(['PATCH', 'DELETE', 'PUT', 'POST']))
    .min(1)
    .prefault(['PATCH', 'DELETE'])
    .meta({
      description:
        'Methods that require `If-Match` on a member. A POST to a member always does: the shop may take it for any method. `POST`: also on every path below, for shops that change by POST.',
    }),
  nonMembers: z
    .array(
      z.string().regex(/^[A-Za-z0-9._~-]{1,64}$/, { error: 'must be one segment of a path, such as search' }),
    )
    .prefault([])
    .meta({
      description:
        'Segments in place of an id that name no member, such as `search`. These paths, and all below, have no tags and need no `If-Match`. Only for paths where no request changes a member.',
    }),
  ifMatch: z.enum(['strict', 'lenient']).default('strict').meta({
    description: '`lenient` also accepts tags that were changed on their way: `W/"t"`, `t` and `"t-gzip"`.',
  }),
  openWrites: z.enum(['mark', 'lease']).default('mark').meta({
    description:
      'Writes without `If-Match` on a route without a row. `mark`: they make the tag invalid, and other writes do not wait. `lease`: others wait, so any client can delay the owner; for resources that guests write.',
  }),
  batch: z.enum(['refuse', 'guarded']).default('refuse').meta({
    description:
      'Changes of the whole collection. `refuse`: 400, 412 or 428, except a POST that is no form. `guarded`: with a token, POST is forwarded, and `methods` with the `ETag` of the collection. Meanwhile no member is written; afterwards all tags of members are old.',
  }),
  ignore: z
    .array(
      z.string().regex(/^(\/([^~/]|~[01])*)+$/, {
        error: 'must be a JSON pointer such as /data/attributes/updatedAt',
      }),
    )
    .prefault([])
    .meta({
      description:
        'JSON pointers (RFC 6901) of parts that may change without a new tag. Documents over 256 KiB or 256 levels are compared whole.',
    }),
});

export const entityTags = onByDefault({
  lease: duration({ from: '1s', to: '10m' }).prefault('15s').meta({
    description:
      'Longest time that one write keeps its resource ([how to choose](redis.md#choosing-entitytagslease)).',
  }),
  sendBy: duration({ from: '100ms' }).prefault('2s').meta({
    description: 'A write is sent to the shop within this time after its claim, or not at all.',
  }),
  wait: duration({ from: '0s' }).prefault('5s').meta({
    description: 'How long a second write waits for the first one. Then 503. At most `lease`.',
  }),
  anonymousRecords: z.int().min(0).max(10_000_000).default(1000).meta({
    description:
      'Records that reads without a token may make for each client address, hour and process. Then new ids get no tag (event `untracked-anonymous`). Raise it if one address serves many guests.',
  }),
  resources: z
    .array(resource)
    .min(1)
    .prefault([{ collection: '/carts', member: '/carts/{cart_id}' }])
    .meta({ description: 'Resources with entity tags.' }),
}).meta({ description: 'Entity tags (RFC 9110 section 8.8.3) and preconditions. `false`: none.' });
