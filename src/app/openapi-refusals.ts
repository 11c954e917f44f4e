import type { Config } from '../config/schema.ts';
import {
  type Answer,
  buildRejections,
  errorFormats,
  errorMediaTypes,
  type Rejection,
  type RejectionName,
} from '../http/rejection.ts';
import { RejectionBodies, reasonPhraseOf } from '../http/rejection-bodies.ts';
import { refuseForNow, refuseNotPlain, refuseRefresh, refuseUnknown } from '../refresh-tokens/refusals.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Which requests may get a refusal: all of them, or those of one feature. */
type Scope = 'every' | 'protected' | 'tracked' | 'resolver' | 'token' | 'forwarded';

const scopes: Readonly<Record<RejectionName, readonly Scope[]>> = {
  'bad-request': ['every'],
  'bad-request-target': ['every'],
  'bad-request-fields': ['every'],
  'bad-host': ['every'],
  'unexpected-body': ['every'],
  'method-override': ['every'],
  'lenient-spelling': ['tracked', 'token'],
  'resource-id-missing': ['tracked'],
  'method-not-allowed': ['every'],
  'request-timeout': ['every'],
  'payload-too-large': ['every'],
  'target-too-long': ['every'],
  'expectation-failed': ['every'],
  'fields-too-large': ['every'],
  'transfer-encoding-unsupported': ['every'],
  'http-version-unsupported': ['every'],
  'access-token-missing': ['protected'],
  'access-token-invalid': ['protected'],
  'access-token-repeated': ['protected'],
  'cross-site-request': ['protected'],
  'insufficient-scope': ['protected'],
  'keys-unavailable': ['protected'],
  'if-match-missing': ['tracked'],
  'if-match-invalid': ['tracked'],
  'collection-write': ['tracked'],
  'tag-store-unavailable': ['tracked'],
  'resource-busy': ['tracked'],
  'url-missing': ['resolver'],
  'url-not-found': ['resolver'],
  'refresh-token-invalid': ['token'],
  'token-request-type': ['token'],
  'token-request-not-plain': ['token'],
  'token-answer-unreadable': ['token'],
  'refresh-token-busy': ['token'],
  'refresh-token-unavailable': ['token'],
  'token-store-unavailable': ['token'],
  'upstream-unreachable': ['forwarded'],
  'upstream-invalid': ['forwarded'],
  'upstream-timeout': ['forwarded'],
  'rate-limited': ['forwarded'],
  overloaded: ['every'],
  'internal-error': ['every'],
};

/** A refusal as the document describes it. */
interface DescribedRefusal {
  readonly status: number;
  readonly text: string;
  readonly headers: Json;
  /** Media type -> schema. */
  readonly content: Json;
}

export type Refusals = ReadonlyMap<string, DescribedRefusal>;

export const requestId = {
  description: 'Identifies the request in the log.',
  schema: { type: 'string' },
};
const retryAfter = {
  description: 'Seconds after which to try again, where they are known.',
  schema: { type: 'string', pattern: '^[0-9]+$' },
};

export function describeRefusals(config: Config): Refusals {
  const table = buildRejections(config.rejections);
  const bodies = new RejectionBodies(table, config.errors);
  const { format } = config.errors;
  const formats = format === 'negotiate' ? errorFormats : [format];
  const described = new Map<string, DescribedRefusal>();
  for (const [name, { status, detail }] of Object.entries(table)) {
    const answers = formats.map((one) => bodies.of(name as RejectionName, errorMediaTypes[one]));
    described.set(name, describe(`${name}: ${detail}`, status, headersOf(name as RejectionName), answers));
  }
  for (const [name, rejection] of Object.entries(oauthRefusals)) {
    const { answer } = rejection;
    if (answer === undefined) continue;
    const headers = rejection.retryAfterSeconds === undefined ? {} : { 'Retry-After': retryAfter };
    described.set(
      `oauth.${name}`,
      describe(`${name}: as RFC 6749 says it.`, answer.status, headers, [answer]),
    );
  }
  return described;
}

/** The refusals that a token endpoint of `format: form` writes as OAuth errors (RFC 6749 section 5.2). */
const oauthRefusals: Readonly<Partial<Record<RejectionName, Rejection>>> = {
  'refresh-token-invalid': refuseRefresh('form', 'used'),
  'token-request-type': refuseNotPlain('form', 'content-type'),
  'token-request-not-plain': refuseNotPlain('form', 'name'),
  'refresh-token-busy': refuseForNow('form', { remainingMs: 1, isIndeterminate: false }, 1),
  'refresh-token-unavailable': refuseForNow('form', { remainingMs: 1, isIndeterminate: true }, 1),
  'token-store-unavailable': refuseUnknown('form'),
};

function describe(text: string, status: number, more: Json, answers: readonly Answer[]): DescribedRefusal {
  const content = answers.map(({ fields, body }) => {
    const [mediaType = ''] = (fields[fields.indexOf('Content-Type') + 1] ?? '').split(';');
    return [mediaType, schemaOf(JSON.parse(String(body)))];
  });
  return {
    status,
    text,
    headers: { 'X-Request-Id': requestId, ...more },
    content: Object.fromEntries(content),
  };
}

const challenged: readonly RejectionName[] = [
  ...(['access-token-invalid', 'access-token-missing', 'access-token-repeated'] as const),
  'insufficient-scope',
];
/** draft-ietf-httpapi-ratelimit-headers-11. */
const rateLimit = {
  'Retry-After': retryAfter,
  RateLimit: { schema: { type: 'string' } },
  'RateLimit-Policy': { schema: { type: 'string' } },
};

function headersOf(name: RejectionName): Json {
  if (name === 'method-not-allowed') return { Allow: { schema: { type: 'string' } } };
  if (challenged.includes(name))
    return { 'WWW-Authenticate': { description: 'RFC 6750 section 3.', schema: { type: 'string' } } };
  if (name === 'rate-limited') return rateLimit;
  return name === 'overloaded' || /-(?:unavailable|busy)$/.test(name) ? { 'Retry-After': retryAfter } : {};
}

/** Members with text for people, whose wording may change: the schema does not fix it. */
const prose: ReadonlySet<string> = new Set(['detail', 'title', 'error_description']);

/** A schema that the body of this refusal matches, and that of no other one. */
function schemaOf(value: unknown, key = ''): Json {
  if (Array.isArray(value)) {
    const items = value.map((item) => schemaOf(item));
    return { type: 'array', prefixItems: items, minItems: items.length, maxItems: items.length };
  }
  if (typeof value === 'object' && value !== null) {
    const properties = Object.entries(value).map(([name, member]) => [name, schemaOf(member, name)]);
    return {
      type: 'object',
      required: Object.keys(value),
      properties: Object.fromEntries(properties),
      additionalProperties: false,
    };
  }
  if (prose.has(key)) return { type: 'string', examples: [value] };
  return { type: Number.isInteger(value) ? 'integer' : 'string', const: value };
}

export function schemaKey(name: string, mediaType: string): string {
  return `${name}.${mediaType.replace(/^application\//, '').replaceAll('+', '-')}`;
}

/** The responses of an operation that may get these refusals; those of one status are one response. */
export function refusalResponses(names: readonly string[], refusals: Refusals): Json {
  const known = names.map((name) => [name, refusals.get(name) as DescribedRefusal] as const);
  const byStatus = Map.groupBy(known, ([, { status }]) => String(status));
  const responses = [...byStatus].map(([status, group]) => {
    const [first] = group;
    if (group.length === 1 && first !== undefined)
      return [status, { $ref: `#/components/responses/${first[0]}` }];
    const content: Record<string, { schema: { anyOf: Json[] } }> = {};
    for (const [name, refusal] of group) {
      for (const mediaType of Object.keys(refusal.content)) {
        content[mediaType] ??= { schema: { anyOf: [] } };
        content[mediaType].schema.anyOf.push({
          $ref: `#/components/schemas/${schemaKey(name, mediaType)}`,
        });
      }
    }
    const headers = Object.fromEntries(group.flatMap(([, refusal]) => Object.entries(refusal.headers)));
    const words = group.map(([name]) => name).join(', ');
    return [status, { description: `${reasonPhraseOf(Number(status))}: ${words}`, headers, content }];
  });
  return Object.fromEntries(responses);
}

export function namesOf(...wanted: readonly Scope[]): string[] {
  return Object.entries(scopes).flatMap(([name, of]) => (of.some((one) => wanted.includes(one)) ? name : []));
}
