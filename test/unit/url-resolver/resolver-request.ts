import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { fieldValue } from '../../../src/http/field-list.ts';
import type { Answer, Rejection } from '../../../src/http/rejection.ts';
import type { FairSemaphore } from '../../../src/lib/fair-semaphore.ts';
import { contractEntityTypes } from '../../../src/url-resolver/envelope.ts';
import { UrlResolver } from '../../../src/url-resolver/filter.ts';
import type { UrlResolverOptions } from '../../../src/url-resolver/options.ts';
import type { AskUpstream } from '../../../src/url-resolver/source.ts';
import { canonicalRequest } from '../../harness/run-filter.ts';

export const requestFor = (target: string, more: Partial<CanonicalRequest> = {}) =>
  canonicalRequest(target, {
    fields: ['Host', 'api.shop.example', 'Accept', '*/*'],
    ...{ host: 'api.shop.example', scheme: 'https' as const, clientAddress: '192.0.2.1' },
    ...more,
  });

/** A resolver with the default settings, in which every look-up gets a permit at once. */
export function createResolver({ upstream, lifetimes, ...more }: ResolverSettings): UrlResolver {
  return new UrlResolver({
    ...{ path: '/url-resolver', locales: ['en', 'de'], stores: [], storeByHost: false },
    ...{ entityTypes: contractEntityTypes, maxEntries: 100_000 },
    ...more,
    lifetimes: {
      ...{
        ttlMs: 300_000,
        notFoundTtlMs: 30_000,
        staleWhileRevalidateMs: 60_000,
        staleIfErrorMs: 86_400_000,
      },
      ...lifetimes,
    },
    upstream: upstream && { timeoutMs: 10_000, permits: unlimited, ...upstream },
  });
}

const unlimited: Pick<FairSemaphore, 'acquire'> = { acquire: () => ({ granted: undefined, release() {} }) };

export interface ResolverSettings extends Partial<Omit<UrlResolverOptions, 'lifetimes' | 'upstream'>> {
  readonly lifetimes?: Partial<UrlResolverOptions['lifetimes']>;
  readonly upstream?: {
    readonly ask: AskUpstream;
    readonly permits?: Pick<FairSemaphore, 'acquire'>;
    readonly timeoutMs?: number;
  };
}

export interface Resolved {
  readonly status: number;
  readonly body: string;
  /** Name of the rejection, if the answer is one. */
  readonly rejection: string | undefined;
  field(name: string): string | undefined;
}

const rejectionStatus: Record<string, number> = {
  'url-missing': 422,
  'url-not-found': 404,
  'upstream-unreachable': 502,
  'upstream-invalid': 502,
  'upstream-timeout': 504,
  overloaded: 503,
};

/** Asks the resolver. Throws if the request is not for it. */
export async function resolve(
  resolver: UrlResolver,
  target: string,
  more: Partial<CanonicalRequest> = {},
): Promise<Resolved> {
  const resolution: Answer | Rejection | undefined = await resolver.answer(requestFor(target, more));
  if (resolution === undefined) throw new Error(`${target} is not the resolver's`);
  const fields = resolution.fields ?? [];
  const isRefusal = 'rejection' in resolution;
  return {
    status: isRefusal ? (rejectionStatus[resolution.rejection] ?? 0) : resolution.status,
    body: isRefusal ? '' : String(resolution.body ?? ''),
    rejection: isRefusal ? resolution.rejection : undefined,
    field: (name) => fieldValue(fields, name.toLowerCase()),
  };
}

/** `/url-resolver?url=` with the value encoded. */
export function targetOf(url: string): string {
  return `/url-resolver?url=${encodeURIComponent(url)}`;
}

/** [entityType, entityId] of a document. */
export function entityOf(body: string): [string, string] {
  const { attributes } = JSON.parse(body).data[0];
  return [attributes.entityType, attributes.entityId];
}
