import { z } from 'zod';
import { contractEntityTypes } from '../../url-resolver/envelope.ts';
import { duration, filePath, offByDefault, path, text } from '../values.ts';

/** The sources of mappings; the file is asked first. */
interface ResolverSource {
  /** Mapping file (CSV). */
  readonly file?: string;
  readonly upstream: boolean;
}

const sourceText =
  'must be upstream, a mapping file in CSV (urls.csv), or [file, upstream]; write a JSON or YAML file as CSV';
const mappingFile = filePath.regex(/\.csv$/i, { error: sourceText });

const source = z
  .union([z.literal('upstream'), mappingFile, z.tuple([mappingFile, z.literal('upstream')])], {
    error: sourceText,
  })
  .transform((given): ResolverSource => {
    if (given === 'upstream') return { upstream: true };
    return typeof given === 'string' ? { file: given, upstream: false } : { file: given[0], upstream: true };
  })
  .prefault('upstream')
  .meta({
    description:
      '`upstream`, a mapping file in CSV ([url-resolver.md](url-resolver.md)), or `[file, upstream]`: the file first.',
  });

const locale = z
  .string()
  .regex(/^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$/, { error: 'must be a locale such as en or de-AT' });

const entityType = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$/, {
  error: 'must be a resource type such as abstract-products: letters, digits, and . _ ~ -',
});

export const urlResolver = offByDefault({
  path: path.prefault('/url-resolver').meta({ description: 'Path of the resolver.' }),
  source,
  locales: z.array(locale).min(1).prefault(['en', 'de']).meta({
    description:
      'Locales of the shop. `Accept-Language` chooses one of them, and the first one for any other language.',
  }),
  entityTypes: z
    .array(entityType)
    .min(1)
    .max(255)
    .prefault([...contractEntityTypes])
    .meta({
      description: 'Types to which a URL may lead. An answer with another type is passed on unchanged.',
    }),
  stores: z.array(text).prefault([]).meta({
    description:
      'Shop stores (`DE`, `AT`), as `Store` or `_store` names them. Requests for others are forwarded and not cached. With `upstream.forwardHost` mappings are kept for each host.',
  }),
  ttl: duration().prefault('5m').meta({ description: 'How long a mapping is fresh.' }),
  notFoundTtl: duration({ from: '0s' }).prefault('30s').meta({ description: 'How long a 404 is cached.' }),
  staleWhileRevalidate: duration({ from: '0s' }).prefault('1m').meta({
    description: 'How long after `ttl` a mapping is still used while the shop is asked again (RFC 5861).',
  }),
  staleIfError: duration({ from: '0s', to: '365d' }).prefault('24h').meta({
    description: 'How long after `ttl` a mapping is still used while the shop is down (RFC 5861).',
  }),
  maxEntries: z.int().min(1).max(10_000_000).default(100_000).meta({
    description: 'Mappings in the memory of one process; the least recently used are removed first.',
  }),
}).meta({
  description:
    'Answers readable URLs (`/en/acer-aspire-s7`) from a cache. `false` (default): the shop answers. `{}`: the defaults below.',
});
