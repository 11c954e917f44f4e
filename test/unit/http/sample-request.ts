import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import {
  buildRequestRules,
  canonicaliseRequest,
  type RequestHead,
  type RequestRulesOptions,
} from '../../../src/http/canonicalise-request.ts';
import { createPeer } from '../../../src/http/peer.ts';
import { isRejection, type Rejection } from '../../../src/http/rejection.ts';

export interface SampleOptions extends Partial<RequestRulesOptions> {
  readonly remoteAddress?: string;
  readonly isTls?: boolean;
}

export function sampleHead(more: Partial<RequestHead> & { fields?: readonly string[] } = {}): RequestHead {
  const { fields = [], ...head } = more;
  return {
    method: 'GET',
    url: '/carts/123?include=items',
    rawHeaders: ['Host', 'shop.example', ...fields],
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    ...head,
  };
}

/** Canonicalises one head by the default rules, with these options. */
export function canonicaliseSample(
  head: RequestHead,
  { remoteAddress = '192.0.2.1', isTls = false, ...options }: SampleOptions = {},
): CanonicalRequest | Rejection {
  const rules = sampleRules(options);
  return canonicaliseRequest(head, createPeer(remoteAddress, isTls, rules.isTrusted), rules);
}

const rulesByOptions = new Map<string, ReturnType<typeof buildRequestRules>>();

/** Rules are kept, as in the proxy: building them costs more than all decisions on one head. */
function sampleRules(options: Partial<RequestRulesOptions>): ReturnType<typeof buildRequestRules> {
  const build = () =>
    buildRequestRules({
      upstreamHost: 'upstream.internal:9000',
      requestBodyBytes: 1000,
      generateRequestId: () => 'generated-id',
      ...options,
    });
  if (options.generateRequestId !== undefined) return build();
  const key = JSON.stringify(options);
  const rules = rulesByOptions.get(key) ?? build();
  rulesByOptions.set(key, rules);
  return rules;
}

/** Like `canonicaliseSample`; throws if the head is refused. */
export function accepted(head: RequestHead, options?: SampleOptions): CanonicalRequest {
  const result = canonicaliseSample(head, options);
  if (isRejection(result)) throw new Error(`refused: ${result.rejection} ${result.reason ?? ''}`);
  return result;
}
