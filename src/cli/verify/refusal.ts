import type { RejectionRow } from '../../http/rejection.ts';
import { type Area, type Check, createCheck } from './check.ts';
import type { NoReply, Reply } from './probe-client.ts';

/** `401 002`, `404`, or why there was no answer. */
export function replyText(reply: Reply | NoReply): string {
  if ('fault' in reply) return reply.fault;
  const code = errorCodeOf(reply);
  return code === undefined ? String(reply.status) : `${reply.status} ${code}`;
}

export function rejectionText({ status, code }: RejectionRow): string {
  return `${status} ${code}`;
}

/** Whether an answer is this refusal: its status, and its code in the error body. */
export function isRefusal(reply: Reply | NoReply, { status, code }: RejectionRow): boolean {
  return !('fault' in reply) && reply.status === status && errorCodeOf(reply) === code;
}

/** Checks an answer that must be this refusal; a 401 must say how to authenticate (RFC 9110 section 11.6.1). */
export function checkRefusal(
  area: Area,
  name: string,
  reply: Reply | NoReply,
  expected: RejectionRow,
  advice?: string,
): Check {
  const isRefused = isRefusal(reply, expected);
  const challenge = 'fault' in reply ? '' : (reply.fields['www-authenticate'] ?? '');
  if (isRefused && expected.status === 401 && !/^bearer\b/i.test(challenge)) {
    return createCheck(area, name, false, 'a challenge of scheme Bearer', challenge || 'no WWW-Authenticate');
  }
  const text = 'fault' in reply ? undefined : advice;
  return createCheck(area, name, isRefused, rejectionText(expected), replyText(reply), text);
}

/** A server chooses its codes; none of ours is as long. */
const maxCodeLength = 64;

/** Code of the first error of the body; undefined where there is none. */
function errorCodeOf({ body }: Reply): string | undefined {
  const parsed = parseJson(body) as { errors?: readonly { code?: unknown }[] } | undefined;
  const code = Array.isArray(parsed?.errors) ? parsed.errors[0]?.code : undefined;
  return typeof code === 'string' ? code.slice(0, maxCodeLength) : undefined;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
