import { z } from 'zod';
import { distinct, duration, filePath, path, text } from '../values.ts';

/** Who knows what a URL means; a file is asked first. */
export interface ResolverSource {
  /** Mapping file (yaml, yml, json or csv). */
  readonly file?: string;
  readonly upstream: boolean;
}

const sourceText = 'must be upstream, a mapping file (.yaml, .yml, .json or .csv), or [file, upstream]';
const mappingFile = filePath().regex(/\.(ya?ml|json|csv)$/i, { error: sourceText });

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
      '`upstream`, a mapping file (`.yaml`, `.json`, `.csv`), or `[file, upstream]`: the file first.',
  });

const locale = () =>
  z
    .string()
    .regex(/^[A-Za-z]{2,3}([_-][A-Za-z0-9]{2,8})*$/, { error: 'must be a locale such as en or de-AT' });

export const urlResolver = z
  .union([
    z.literal(false),
    z.strictObject({
      path: path().prefault('/url-resolver').meta({ description: 'Path of the resolver.' }),
      source,
      locales: distinct(locale()).min(1).prefault(['en', 'de']).meta({
        description: 'Locales of the shop; `Accept-Language` is negotiated to one of them.',
      }),
      defaultLocale: locale()
        .default('en')
        .meta({ description: 'Locale for any other language; one of `locales`.' }),
      stores: distinct(text()).prefault([]).meta({
        description:
          'Known values of `Store`, `_store` or the host; requests of other stores are asked uncached.',
      }),
      ttl: duration().prefault('5m').meta({ description: 'How long a mapping is fresh.' }),
      notFoundTtl: duration({ from: '0s' })
        .prefault('30s')
        .meta({ description: 'How long a 404 is remembered.' }),
      staleWhileRevalidate: duration({ from: '0s' }).prefault('1m').meta({
        description: 'How long after `ttl` a mapping is still answered while it is asked anew (RFC 5861).',
      }),
      staleIfError: duration({ from: '0s', to: '365d' }).prefault('24h').meta({
        description: 'How long after `ttl` a mapping is still answered while the shop is down (RFC 5861).',
      }),
      maxEntries: z.int().min(1).max(10_000_000).default(100_000).meta({
        description: 'Mappings kept in one process; the least recently used go first.',
      }),
    }),
  ])
  .prefault({})
  .meta({
    description:
      'The resolver of SEF URLs, answered from a cached mapping. `false`: requests pass to the shop.',
  });
