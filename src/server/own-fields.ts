import { type CanonicalRequest, methods } from '../http/canonical-request.ts';
import { type FieldList, fieldValue, isNamed, joinFields, trimOws, varyingBy } from '../http/field-list.ts';
import type { Answer } from '../http/rejection.ts';

/**
 * Fields that shopward adds to answers: the request id, and cross-origin fields. Without `cors` the shop's own cross-origin
 * fields are kept, and ETag is added to the fields that pages may read.
 */
export function createOwnFields(cors: ReturnType<typeof createCors> | undefined) {
  const of = (request: CanonicalRequest, exposed?: readonly string[]): FieldList =>
    cors === undefined
      ? ['X-Request-Id', request.requestId]
      : ['X-Request-Id', request.requestId, ...cors.fieldsFor(fieldValue(request.fields, 'origin'), exposed)];
  return {
    /** For shopward's own answers. */
    of,
    /** For the refusal of a malformed request, so that pages in browsers may read the status. */
    ofMalformed(origin: string | undefined, requestId: string): FieldList {
      const ofCors = cors?.fieldsFor(origin) ?? [];
      return ['X-Request-Id', requestId, ...ofCors];
    },
    /** The upstream's fields, with shopward's own in place of the same names. */
    editForwarded(fields: FieldList, request: CanonicalRequest): FieldList {
      const edited: string[] = [];
      const isShared = cors === undefined && fieldValue(fields, 'access-control-allow-origin') !== undefined;
      const isRead = isShared || cors !== undefined;
      let exposed: string[] | undefined;
      for (let i = 0; i < fields.length; i += 2) {
        const name = fields[i] as string;
        const value = fields[i + 1] as string;
        if (isNamed(name, 'x-request-id')) continue;
        if (isRead && isNamed(name, 'access-control-expose-headers')) {
          exposed ??= [];
          exposed.push(value);
        } else if (cors === undefined || !isCrossOrigin(name)) edited.push(name, value);
      }
      if (isShared) edited.push('Access-Control-Expose-Headers', withTag(exposed ?? []));
      if (cors !== undefined) return joinFields(edited, of(request, exposed));
      edited.push('X-Request-Id', request.requestId);
      return edited;
    },
  };
}

function withTag(exposed: readonly string[]): string {
  const list = exposed.join(', ');
  const names = list.split(',').map((name) => name.trim().toLowerCase());
  if (names.includes('etag') || names.includes('*')) return list;
  return list === '' ? 'ETag' : `${list}, ETag`;
}

function isCrossOrigin(name: string): boolean {
  return name.slice(0, 15).toLowerCase() === 'access-control-';
}

/** Exported for its tests. */
export interface CorsSettings {
  /** In the spelling of browsers; `*` alone: every origin, without credentials. */
  readonly origins: readonly string[];
  /** Whether pages may send cookies. Default: yes, unless the origin is `*`. */
  readonly credentials?: boolean | undefined;
  readonly exposedFields: readonly string[];
}

/** Request fields of this API that need a preflight. */
const usualFields = (
  'Accept Accept-Language Authorization Content-Type If-Match If-None-Match Store ' +
  'X-Anonymous-Customer-Unique-Id'
).split(' ');
const fieldName = /^[A-Za-z0-9-]{1,100}$/;
/** For every answer to a preflight; browsers keep it for ten minutes. */
const preflightFields = ['Access-Control-Allow-Methods', methods.join(', '), 'Access-Control-Max-Age', '600'];

/** Cross-origin fields that shopward sets (Fetch standard, section 3.3). */
export function createCors(settings: CorsSettings) {
  const { origins, exposedFields } = settings;
  const known = new Set(origins);
  const isEverybody = known.has('*');
  const isAllowed = (origin: string | undefined): origin is string =>
    origin !== undefined && (isEverybody || known.has(origin));
  const credentials =
    settings.credentials !== false && !isEverybody ? ['Access-Control-Allow-Credentials', 'true'] : [];
  const exposed = exposedFields.join(', ');
  return {
    isPreflight: ({ method, fields: sent }: CanonicalRequest): boolean =>
      method === 'OPTIONS' &&
      isAllowed(fieldValue(sent, 'origin')) &&
      fieldValue(sent, 'access-control-request-method') !== undefined,
    answerPreflight(request: CanonicalRequest): Answer {
      const asked = fieldValue(request.fields, 'access-control-request-headers') ?? '';
      const allowed = union(usualFields, namesIn(asked));
      return {
        status: 204,
        fields: ['Access-Control-Allow-Headers', allowed.join(', '), ...preflightFields],
        body: null,
      };
    },
    /**
     * Fields of every other answer to a request from `origin`, flat; only `Vary` if the origin is not allowed. `ofShop`: the
     * names in the shop's own Access-Control-Expose-Headers, which stay readable.
     */
    fieldsFor(origin: string | undefined, ofShop: readonly string[] = []): FieldList {
      // With `*` the answer is the same for every origin, so it does not vary.
      if (!isEverybody && !isAllowed(origin)) return ['Vary', 'Origin'];
      const readable =
        ofShop.length === 0 ? exposed : union(exposedFields, ofShop.flatMap(namesIn)).join(', ');
      return [
        'Access-Control-Allow-Origin',
        isEverybody ? '*' : (origin as string),
        ...credentials,
        'Access-Control-Expose-Headers',
        readable,
        ...(isEverybody ? [] : ['Vary', 'Origin']),
      ];
    },
  };
}

function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name === '*' || fieldName.test(name));
}

/** Each name once, in any case, in the order of the first occurrences. */
function union(some: readonly string[], others: readonly string[]): readonly string[] {
  const named = new Map<string, string>();
  for (const name of [...some, ...others]) {
    const key = name.toLowerCase();
    if (!named.has(key)) named.set(key, name);
  }
  return [...named.values()];
}

/** These fields let a shared cache store an answer in spite of `Cache-Control` (RFC 9213 and similar). */
const sharedCacheFields = /^(?:[a-z0-9-]+-cache-control|surrogate-control|x-accel-expires)$/i;
const sharing =
  /^(?:public|private|s-maxage|proxy-revalidate|stale-while-revalidate|stale-if-error)(?:$|[=\s])/i;

/**
 * Fields of an answer that needed a token. It is `private`, because `public`, `s-maxage` and `must-revalidate` let every shared
 * cache store the answer to a request with `Authorization` (RFC 9111 section 3.5). Caching in the user's own browser does not
 * change. `byCookie`: the token may be in a cookie, so the answer also varies by `Cookie`.
 */
export function toPrivate(fields: FieldList, byCookie: boolean): string[] {
  const kept: string[] = [];
  let directives: string | undefined;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (isNamed(name, 'cache-control'))
      directives = directives === undefined ? value : `${directives},${value}`;
    else if (!sharedCacheFields.test(name)) kept.push(name, value);
  }
  kept.push('Cache-Control', directives === undefined ? 'private' : privately(directives));
  return byCookie ? varyingBy(kept, 'Cookie') : kept;
}

/** With field names (`private="Set-Cookie"`) the directive covers only those fields: then `no-store` replaces it. */
function privately(directives: string): string {
  // The usual value of tracked resources.
  if (directives === 'no-cache') return 'private, no-cache';
  if (directives.includes('"')) return 'private, no-store';
  const kept = directives
    .split(',')
    .map(trimOws)
    .filter((directive) => directive !== '' && !sharing.test(directive));
  return ['private', ...kept].join(', ');
}
