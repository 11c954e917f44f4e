import { type CanonicalRequest, methods } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { Answer } from '../http/rejection.ts';

/** Cross-origin fields that are shopward's to set (Fetch standard, section 3.3); only where origins are configured. */
export interface Cors {
  /** Whether it is a preflight of a known origin. */
  isPreflight(request: CanonicalRequest): boolean;
  answerPreflight(preflight: CanonicalRequest): Answer;
  /** Fields of every other answer to a request from `origin`, flat; without an allowed origin only `Vary`. */
  fieldsFor(origin: string | undefined): readonly string[];
}

/** What clients of this API send besides what they ask for. */
const allowedFields = [
  'Accept',
  'Accept-Language',
  'Authorization',
  'Content-Type',
  'If-Match',
  'If-None-Match',
  'Store',
  'X-Anonymous-Customer-Unique-Id',
];
const exposedFields = 'ETag, WWW-Authenticate, Retry-After, X-Request-Id';
const preflightSeconds = 600;
const fieldName = /^[A-Za-z0-9-]{1,100}$/;

export function createCors(origins: readonly string[]): Cors {
  const known = new Set(origins);
  const isAllowed = (origin: string | undefined): origin is string =>
    origin !== undefined && known.has(origin);
  return {
    isPreflight: ({ method, fields }) =>
      method === 'OPTIONS' &&
      isAllowed(fieldValue(fields, 'origin')) &&
      fieldValue(fields, 'access-control-request-method') !== undefined,
    answerPreflight(request) {
      const asked = (fieldValue(request.fields, 'access-control-request-headers') ?? '')
        .split(',')
        .map((name) => name.trim())
        .filter((name) => fieldName.test(name));
      return {
        status: 204,
        fields: [
          'Access-Control-Allow-Methods',
          methods.join(', '),
          'Access-Control-Allow-Headers',
          [...new Set([...allowedFields, ...asked])].join(', '),
          'Access-Control-Max-Age',
          String(preflightSeconds),
        ],
        body: null,
      };
    },
    fieldsFor(origin) {
      if (!isAllowed(origin)) return ['Vary', 'Origin'];
      return [
        'Access-Control-Allow-Origin',
        origin,
        'Access-Control-Allow-Credentials',
        'true',
        'Access-Control-Expose-Headers',
        exposedFields,
        'Vary',
        'Origin',
      ];
    },
  };
}
