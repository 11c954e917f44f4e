import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValue, isNamed, joinFields } from '../http/field-list.ts';
import type { Cors } from './cors.ts';

/** Fields that shopward puts on answers: the request id, and cross-origin fields. */
export interface OwnFields {
  /** For an answer of our own. */
  of(request: CanonicalRequest): FieldList;
  /** For the refusal of a malformed request, so that the page of a browser may read the status. */
  ofMalformed(origin: string | undefined, requestId: string): FieldList;
  /** The upstream's fields, with ours in place of theirs. */
  editForwarded(fields: FieldList, request: CanonicalRequest): FieldList;
}

/** Without `cors` the shop's own cross-origin fields are kept, and ETag is added to the fields that pages may read. */
export function createOwnFields(cors: Cors | undefined): OwnFields {
  const of = (request: CanonicalRequest, exposed?: readonly string[]): FieldList =>
    cors === undefined
      ? ['X-Request-Id', request.requestId]
      : ['X-Request-Id', request.requestId, ...cors.fieldsFor(fieldValue(request.fields, 'origin'), exposed)];
  return {
    of: (request) => of(request),
    ofMalformed: (origin, requestId) => ['X-Request-Id', requestId, ...(cors?.fieldsFor(origin) ?? [])],
    editForwarded(fields, request) {
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
