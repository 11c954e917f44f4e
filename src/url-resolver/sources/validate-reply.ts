import { isEntityId, isEntityType } from '../mapping.ts';
import type { UpstreamReply } from './ask-upstream.ts';
import { forbidsToKeep, isPlainJson } from './reply-fields.ts';
import { fail, type Verdict } from './verdict.ts';

/** A resolver document has some 300 bytes. */
export const maxReplyBytes = 64 * 1024;

/**
 * Checks the shop's reply. Believed are only a whole 200 with the contract's envelope, a 404 with code 2802 and a 422 with
 * code 2801; all else is a failure, of which nothing is kept.
 */
export function validateReply(reply: UpstreamReply): Verdict {
  if (reply.status >= 300 && reply.status < 400) return fail('invalid', 'redirect');
  if (reply.status !== 200 && reply.status !== 404 && reply.status !== 422) {
    return fail('invalid', reply.status >= 500 ? 'status-5xx' : 'status');
  }
  if (reply.body.length > maxReplyBytes) return fail('invalid', 'too-large');
  if (!isPlainJson(reply.fields)) return fail('invalid', 'not-json');
  const document = parseObject(reply.body);
  if (document === undefined) return fail('invalid', 'not-json');
  if (reply.status === 200) return validateDocument(document, mayKeep(reply));
  if (reply.status === 404 && hasCode(document, '2802')) return { kind: 'unknown', keep: mayKeep(reply) };
  if (reply.status === 422 && hasCode(document, '2801')) return { kind: 'missing' };
  return fail('invalid', 'status');
}

function validateDocument(document: Record<string, unknown>, keep: boolean): Verdict {
  const { data } = document;
  const element: unknown = Array.isArray(data) && data.length === 1 ? data[0] : undefined;
  if (!isObject(element) || element.type !== 'url-resolver' || !isObject(element.attributes)) {
    return fail('invalid', 'not-the-envelope');
  }
  const { entityType, entityId } = element.attributes;
  if (!isEntityType(entityType) || !isEntityId(entityId)) return fail('invalid', 'not-the-envelope');
  return { kind: 'found', mapping: { entityType, entityId }, keep };
}

function hasCode(document: Record<string, unknown>, code: string): boolean {
  const { errors } = document;
  return Array.isArray(errors) && errors.some((error: unknown) => isObject(error) && error.code === code);
}

/**
 * The question carried nothing of any user, so what is kept is nobody's: `private` and `no-cache`, which the shop's
 * framework puts on every response, say nothing here.
 */
function mayKeep(reply: UpstreamReply): boolean {
  return !forbidsToKeep(reply.fields);
}

function parseObject(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
