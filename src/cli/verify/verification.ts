import { compileProtectedList } from '../../access/packed-list.ts';
import type { ProtectedResource, ProtectedResources } from '../../access/protected-list.ts';
import type { Config } from '../../config/schema.ts';
import type { RejectionRow, Rejections } from '../../http/rejection.ts';
import { isObject, type JsonObject, parseJsonObject } from '../../lib/json.ts';
import type { ProbeClient, Reply } from './probe-client.ts';

/** What all groups of checks share. */
export interface Verification {
  readonly client: ProbeClient;
  readonly config: Config;
  readonly list: ProtectedResources;
  /** Whether a GET without a token is refused: false for open routes and for rows that only observe. */
  readonly isRefused: (path: string) => boolean;
  readonly rejections: Rejections;
  /** Used for every id: no resource of the shop has it. */
  readonly id: string;
  /** Undefined: no token was given. */
  readonly token: string | undefined;
}

/** A GET that a row of the list must refuse without a token. */
export interface RowProbe {
  readonly row: ProtectedResource;
  readonly path: string;
}

/** The path of a template with `id` for every parameter and for `**`. */
function samplePath(template: string, id: string): string {
  return template.replace(/\{[^{}]*\}|\*\*$/g, id);
}

/** A probe of each row that covers GET, in the order of the list. */
export function rowProbes({ list, id }: Pick<Verification, 'list' | 'id'>): RowProbe[] {
  return list.rows
    .filter(({ method }) => method === 'GET' || method === 'ANY')
    .map((row) => ({ row, path: samplePath(row.template, id) }));
}

/** Creates `isRefused`. */
export function createRefusalTest({ config, list }: Pick<Verification, 'config' | 'list'>) {
  const compiled = compileProtectedList(list, config.request);
  return (path: string): boolean => {
    const segments = path.slice(1).split('/');
    const requirement = compiled.match({ method: 'GET', segments, isFormPost: false });
    return requirement !== undefined && !requirement.observe && config.mode !== 'observe';
  };
}

type Area = 'reach' | 'clock' | 'rows' | 'spelling' | 'token' | 'list' | 'tags' | 'shop';

/** One check and its outcome. */
export interface Check {
  readonly area: Area;
  /** The request, or what was compared. */
  readonly name: string;
  /** `skipped`: the check could not or must not be made; `advice` says why. */
  readonly outcome: 'ok' | 'failed' | 'skipped';
  readonly expected: string;
  readonly got: string;
  /** What the outcome means, or what to do. */
  readonly advice?: string;
}

export function skip(area: Area, name: string, advice: string): Check {
  return { area, name, outcome: 'skipped', expected: '', got: '', advice };
}

export function createCheck(
  area: Area,
  name: string,
  isOk: boolean,
  expected: string,
  got: string,
  advice?: string,
): Check {
  return {
    area,
    name,
    outcome: isOk ? 'ok' : 'failed',
    expected,
    got,
    ...(!isOk && advice !== undefined && { advice }),
  };
}

/** `401 002`, `404`, or why there was no answer. */
export function replyText(reply: Reply): string {
  if (reply.fault !== undefined) return reply.fault;
  const code = errorCodeOf(reply);
  return code === undefined ? String(reply.status) : `${reply.status} ${code}`;
}

export function rejectionText({ status, code }: RejectionRow): string {
  return `${status} ${code}`;
}

/** Whether an answer is this refusal, by its status and the code in its body. */
export function isRefusal(reply: Reply, { status, code }: RejectionRow): boolean {
  return reply.status === status && errorCodeOf(reply) === code;
}

/** Checks an answer that must be this refusal; a 401 must say how to authenticate (RFC 9110 section 11.6.1). */
export function checkRefusal(
  area: Area,
  name: string,
  reply: Reply,
  expected: RejectionRow,
  advice?: string,
): Check {
  const isRefused = isRefusal(reply, expected);
  const challenge = reply.fields['www-authenticate'] ?? '';
  if (isRefused && expected.status === 401 && !/^(?:bearer|dpop)\b/i.test(challenge)) {
    return createCheck(area, name, false, 'a Bearer or DPoP challenge', challenge || 'no WWW-Authenticate');
  }
  const text = reply.status === 0 ? undefined : advice;
  return createCheck(area, name, isRefused, rejectionText(expected), replyText(reply), text);
}

/** Characters of a server's error code that are shown; shopward's own are shorter. */
const maxCodeLength = 64;

/** Code of the error in the body, in any format of `errors.format`; undefined without one. */
function errorCodeOf({ body }: Reply): string | undefined {
  const document = parseJsonObject(body);
  const errors = document?.errors;
  const code: unknown = Array.isArray(errors) ? errors[0]?.code : document?.code;
  return typeof code === 'string' ? code.slice(0, maxCodeLength) : undefined;
}

/** The JSON object of a 200; undefined: it is another answer. */
export function documentOf({ status, body }: Reply): JsonObject | undefined {
  return status === 200 ? parseJsonObject(body) : undefined;
}

/** The first resource of a JSON:API document; undefined without one. */
export function firstOf(reply: Reply): JsonObject | undefined {
  const data = documentOf(reply)?.data;
  return Array.isArray(data) && isObject(data[0]) ? data[0] : undefined;
}

/** Concurrent requests. */
const concurrency = 4;

/**
 * Calls `ask` for every item, a few at a time; results are in the order of the items. The time limit of a request starts with
 * its call, so waiting items are not called yet.
 */
export async function eachAtOnce<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const work = async () => {
    for (const [i, item] of entries) results[i] = await ask(item);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
  return results;
}
