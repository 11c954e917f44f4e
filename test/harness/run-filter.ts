import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { type Answer, isRejection, type Rejection } from '../../src/http/rejection.ts';
import type { Matcher } from '../../src/proxy/filter.ts';
import type { ObservedHooks } from '../../src/upstream/hooks.ts';

/** The canonical request that the listener would make for `target`. */
export function canonicalRequest(target: string, more: Partial<CanonicalRequest> = {}): CanonicalRequest {
  const [path = '', ...query] = target.split(/(?=\?)/);
  return {
    ...{ method: 'GET', path, query: query.join(''), segments: path.slice(1).split('/') },
    ...{ fields: ['Host', 'shop.example'], host: 'shop.example', scheme: 'http', clientAddress: '127.0.0.1' },
    ...{ requestId: 'test', isFormPost: false, body: 'none', expectsContinue: false },
    ...more,
  };
}

/** The parts of a filter that the pipeline calls, for tests of one filter alone. */
interface AskedFilter extends Pick<Matcher, 'match' | 'wantsBody'> {
  run(
    match: never,
    context: {
      readonly request: CanonicalRequest;
      readonly identity: never;
      readonly body: Buffer | undefined;
      readonly isObserved: boolean;
    },
  ): ObservedHooks | Answer | Rejection | undefined | Promise<ObservedHooks | Answer | Rejection | undefined>;
}

type Identity = { readonly subject?: string } | undefined;

/** Whether the filter matches, and whether it needs the whole body. False also if it refuses the request. */
export function wishOf(
  filter: AskedFilter,
  request: CanonicalRequest,
  isObserved = false,
): false | 'head' | 'whole-body' {
  const match = filter.match(request);
  if (match === undefined || isRejection(match)) return false;
  return filter.wantsBody?.(match, request, isObserved) ? 'whole-body' : 'head';
}

export async function runFilter(
  filter: AskedFilter,
  request: CanonicalRequest,
  identity: Identity,
  body?: Buffer,
  isObserved = false,
): Promise<ObservedHooks | Answer | Rejection | undefined> {
  const match = filter.match(request);
  if (match === undefined || isRejection(match)) return match;
  return filter.run(match as never, { request, identity: identity as never, body, isObserved });
}
