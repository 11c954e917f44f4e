import { type CanonicalRequest, type Method, methods } from '../http/canonical-request.ts';
import { type FieldList, fieldValue } from '../http/field-list.ts';
import type { Answer } from '../http/rejection.ts';

/** Cross-origin fields that shopward sets (Fetch standard, section 3.3); only if origins are configured. */
export interface Cors {
  /** Whether it is a preflight of a known origin. */
  isPreflight(request: CanonicalRequest): boolean;
  answerPreflight(preflight: CanonicalRequest): Answer;
  /**
   * Fields of every other answer to a request from `origin`, flat; without an allowed origin only `Vary`. `exposed`: what
   * the shop's own Access-Control-Expose-Headers name, which stays readable.
   */
  fieldsFor(origin: string | undefined, exposed?: readonly string[]): FieldList;
}

/** Exported for its tests. */
export interface CorsSettings {
  /** As browsers send them; `*` alone: every origin, without credentials. */
  readonly origins: readonly string[];
  /** Whether pages may send cookies. Default: unless the origin is `*`. */
  readonly credentials?: boolean | undefined;
  /** Default: all that shopward knows. */
  readonly methods?: readonly Method[] | undefined;
  /** Request fields that pages may send. Default: those of this API, and whatever a preflight asks for. */
  readonly fields?: readonly string[] | undefined;
  /** Response fields that pages may read besides the shop's own. */
  readonly exposedFields: readonly string[];
  /** Milliseconds for which a browser keeps the answer to a preflight. */
  readonly maxAge: number;
}

/** Request fields of this API that need a preflight. */
const usualFields = [
  'Accept',
  'Accept-Language',
  'Authorization',
  'Content-Type',
  'If-Match',
  'If-None-Match',
  'Store',
  'X-Anonymous-Customer-Unique-Id',
];
const fieldName = /^[A-Za-z0-9-]{1,100}$/;

export function createCors(settings: CorsSettings): Cors {
  const { origins, fields, exposedFields, maxAge } = settings;
  const known = new Set(origins);
  const isEverybody = known.has('*');
  const isAllowed = (origin: string | undefined): origin is string =>
    origin !== undefined && (isEverybody || known.has(origin));
  const always = preflightFields(settings.methods ?? methods, maxAge);
  const credentials =
    settings.credentials !== false && !isEverybody ? ['Access-Control-Allow-Credentials', 'true'] : [];
  const exposed = exposedFields.join(', ');
  return {
    isPreflight: ({ method, fields: sent }) =>
      method === 'OPTIONS' &&
      isAllowed(fieldValue(sent, 'origin')) &&
      fieldValue(sent, 'access-control-request-method') !== undefined,
    answerPreflight(request) {
      const asked = fieldValue(request.fields, 'access-control-request-headers') ?? '';
      const allowed = fields ?? union(usualFields, namesIn(asked));
      return {
        status: 204,
        fields: ['Access-Control-Allow-Headers', allowed.join(', '), ...always],
        body: null,
      };
    },
    fieldsFor(origin, ofShop = []) {
      // One answer for everybody does not vary.
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

function preflightFields(allowed: readonly string[], maxAgeMs: number): FieldList {
  return [
    'Access-Control-Allow-Methods',
    allowed.join(', '),
    'Access-Control-Max-Age',
    String(Math.floor(maxAgeMs / 1000)),
  ];
}

function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name === '*' || fieldName.test(name));
}

/** Each name once, whatever its case, in the order of the first. */
function union(some: readonly string[], others: readonly string[]): readonly string[] {
  const named = new Map<string, string>();
  for (const name of [...some, ...others]) {
    const key = name.toLowerCase();
    if (!named.has(key)) named.set(key, name);
  }
  return [...named.values()];
}
