import type { Method } from '../http/canonical-request.ts';
import { editFields, type FieldList, fieldValue } from '../http/field-list.ts';
import type { ResponseEdits } from './hooks.ts';

export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly fields: FieldList;
}

/** Whether a response may be held back: not endless, and not announced to be longer than `limitBytes`. */
export function isCollectable(method: Method, head: ResponseHead, limitBytes: number): boolean {
  if (limitBytes <= 0) return false;
  if (isBodiless(method, head.status)) return true;
  if (fieldValue(head.fields, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true)
    return false;
  return Number(fieldValue(head.fields, 'content-length') ?? 0) <= limitBytes;
}

/** The response that `onOutcome` leaves behind: its edits applied, its body framed by Content-Length. */
export function answerFields(
  method: Method,
  head: ResponseHead,
  body: Buffer,
  edits: ResponseEdits,
): ResponseHead & { readonly body: Buffer | undefined } {
  const fields = edits.fields === undefined ? head.fields : editFields(head.fields, edits.fields);
  if (edits.notModified === true) {
    return { status: 304, reason: 'Not Modified', fields: notModifiedFields(fields), body: undefined };
  }
  if (isBodiless(method, head.status)) return { ...head, fields, body: undefined };
  return { ...head, fields: editFields(fields, { 'Content-Length': String(body.length) }), body };
}

/** HEAD, 204 and 304 (RFC 9110 section 6.4.1). */
export function isBodiless(method: string | undefined, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/** A 304 repeats what a cache updates, not what describes the body that is not there (RFC 9110 section 15.4.5). */
function notModifiedFields(fields: FieldList): FieldList {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const lower = (fields[i] as string).toLowerCase();
    const describesBody = lower.startsWith('content-') && lower !== 'content-location';
    if (!describesBody || lower === 'content-security-policy')
      kept.push(fields[i] as string, fields[i + 1] as string);
  }
  return kept;
}
