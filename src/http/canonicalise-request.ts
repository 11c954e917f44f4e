import { type CanonicalRequest, hasBody, type Method, methods } from './canonical-request.ts';
import { buildFieldKinds } from './field-kinds.ts';
import { type FieldList, fieldValue } from './field-list.ts';
import { isFormType, mayOverrideMethod } from './form-encoding.ts';
import { compileEncodedSlash } from './path-template.ts';
import { compileTrust, generateRequestId, type Origin, type Peer, readOrigin } from './peer.ts';
import { isRejection, type Rejection, reject } from './rejection.ts';
import { type FieldFacts, readFields, readFraming } from './request-fields.ts';
import { canonicaliseHost, canonicaliseTarget } from './request-target.ts';

/** The head of a request, in the form of Node's `IncomingMessage`. */
export interface RequestHead {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: FieldList;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
}

/**
 * Makes the one request object that is decided on and forwarded, or refuses the request. Pure, except that `rules` may
 * generate the request id; never throws, whatever the bytes.
 */
export function canonicaliseRequest(
  head: RequestHead,
  peer: Peer,
  rules: RequestRules,
): CanonicalRequest | Rejection {
  if (head.httpVersionMajor === 0) return reject('bad-request', { reason: 'http-0.9' });
  if (head.httpVersionMajor !== 1 || head.httpVersionMinor > 1) return reject('http-version-unsupported');
  const isHttp10 = head.httpVersionMinor === 0;

  const { method } = head;
  if (!isMethod(method, rules.extensionMethods)) return reject('method-not-allowed');

  const facts = readFields(head.rawHeaders, rules.fieldKinds, peer.isTrusted);
  if (isRejection(facts)) return facts;

  const sentHost = facts.host === undefined ? undefined : canonicaliseHost(facts.host);
  if (sentHost === undefined && (facts.host !== undefined || !isHttp10)) return reject('bad-host');

  const target = canonicaliseTarget(head.url ?? '', sentHost, rules.encodedSlash);
  const refusedTarget = isRejection(target) ? target : undefined;
  if (refusedTarget !== undefined && !isPreflight(method, facts)) return refusedTarget;
  const { path, query, segments, alternativeSegments } = isRejection(target) ? noTarget : target;
  // Some shops read the method from the query of any request. Fields are dropped, which changes only a POST.
  const isOverridden = (method === 'POST' && facts.hasMethodOverride) || mayOverrideMethod(query);
  if (isOverridden) return reject('method-override');

  const framing = readFraming(facts, method, isHttp10, rules.requestBodyBytes);
  if (isRejection(framing)) return framing;

  const { contentType: type } = facts;
  const host = sentHost ?? rules.upstreamHost;
  const origin = readOrigin(facts, peer, host, rules);
  const isWebSocketUpgrade = rules.webSocket && !isHttp10 && method === 'GET' && asksForWebSocket(facts);
  return {
    method,
    path,
    query,
    segments,
    alternativeSegments,
    fields: buildFields(facts, origin, host, isHttp10, isWebSocketUpgrade, rules),
    host,
    scheme: origin.scheme,
    clientAddress: origin.clientAddress,
    requestId: origin.requestId,
    clientCertificate: peer.certificate,
    isFormPost: isFormType(type) && (method === 'POST' || (hasBody(framing) && type !== undefined)),
    body: framing.body,
    expectsContinue: framing.expectsContinue,
    isWebSocketUpgrade,
    ...(refusedTarget && { refusedTarget }),
  };
}

const noTarget = { path: '/', query: '', segments: [''], alternativeSegments: undefined };

/** Fetch standard, section 4.8. */
function isPreflight(method: Method, { endToEnd }: FieldFacts): boolean {
  const has = (name: string) => fieldValue(endToEnd, name) !== undefined;
  return method === 'OPTIONS' && has('origin') && has('access-control-request-method');
}

/**
 * Our own fields are set last, after every removal, so that no nomination (RFC 9110 section 7.6.1) or repetition
 * removes them.
 */
function buildFields(
  facts: FieldFacts,
  origin: Origin,
  host: string,
  isHttp10: boolean,
  isWebSocketUpgrade: boolean,
  rules: RequestRules,
): string[] {
  const fields = facts.endToEnd;
  fields[1] = rules.forwardHost ? host : rules.upstreamHost;
  if (isWebSocketUpgrade) for (const part of facts.webSocket) fields.push(part);
  fields.push('X-Forwarded-For', origin.forwardedFor, 'X-Forwarded-Proto', origin.scheme);
  fields.push('X-Forwarded-Host', origin.forwardedHost, 'X-Request-Id', origin.requestId);
  if (rules.viaName !== undefined) fields.push('Via', `${isHttp10 ? '1.0' : '1.1'} ${rules.viaName}`);
  return fields;
}

function asksForWebSocket({ upgrade, nominated }: FieldFacts): boolean {
  return upgrade?.toLowerCase() === 'websocket' && nominated.includes('upgrade');
}

function isMethod(sent: string | undefined, more: readonly (string | undefined)[]): sent is Method {
  return (methods as readonly (string | undefined)[]).includes(sent) || more.includes(sent);
}

/** Exported for its tests. */
export interface RequestRulesOptions {
  /** `host[:port]` of the upstream: its Host field, unless `forwardHost`. */
  readonly upstreamHost: string;
  /** The client's Host is forwarded. Default false. */
  readonly forwardHost?: boolean;
  /** CIDRs and addresses whose X-Forwarded-For, X-Forwarded-Proto and X-Request-Id are believed. Default none. */
  readonly trustedProxies?: readonly string[];
  /** Further fields that are forwarded if a trusted peer sends them, and otherwise dropped. Default none. */
  readonly trustedFields?: readonly string[];
  /** Fields that only shopward sets. They are removed from every request. Default: none. */
  readonly ownFields?: readonly string[];
  /** Path templates whose parameters may contain `%2F`. Default none. */
  readonly encodedSlash?: readonly string[];
  /** Bytes of an announced request body; more is 413. */
  readonly requestBodyBytes: number;
  /** Pseudonym of this proxy in a Via field (RFC 9110 section 7.6.3). Default: no Via field. */
  readonly viaName?: string | undefined;
  /** WebSocket upgrades are recognised. Default false. */
  readonly webSocket?: boolean;
  /** Methods beyond the usual ones that are accepted. Default: none. */
  readonly extensionMethods?: readonly Method[];
  /** Default: a random UUID. Only tests set it. */
  readonly generateRequestId?: () => string;
}

export type RequestRules = ReturnType<typeof buildRequestRules>;

/** Throws a TypeError that names the option's bad entry. */
export function buildRequestRules({
  trustedProxies = [],
  trustedFields = [],
  ownFields,
  encodedSlash = [],
  ...options
}: RequestRulesOptions) {
  return {
    ...{ forwardHost: false, viaName: undefined, webSocket: false, extensionMethods: [], generateRequestId },
    ...options,
    isTrusted: compileTrust(trustedProxies),
    fieldKinds: buildFieldKinds(trustedFields, ownFields),
    encodedSlash: compileEncodedSlash(encodedSlash),
  };
}
