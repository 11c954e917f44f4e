import { maxPathOctets } from '../http/request-target.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import { isObject, parseJson, parseJsonObject } from '../lib/json.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';

/** Whether a path can name a member with this id. A longer id fits into no path. */
export function fitsInPath(id: string): boolean {
  return id !== '' && id.length < maxPathOctets;
}

/** Id of the one member in a JSON:API collection document; undefined: none, several, or not JSON:API. */
export function singleMemberId(octets: Buffer): Eventually<string | undefined> {
  return andThen(dataOf(octets), (data) =>
    Array.isArray(data) && data.length === 1 ? idOf(data[0]) : undefined,
  );
}

/** Id of the resource of a JSON:API document, as in an answer to a POST. */
export async function createdId(octets: Buffer): Promise<string | undefined> {
  const data = await dataOf(octets);
  return idOf(Array.isArray(data) && data.length === 1 ? data[0] : data);
}

/** Type and id of the one resource of a JSON:API document. */
export async function soleResource(
  octets: Buffer,
): Promise<{ readonly type: string; readonly id: string } | undefined> {
  const data = await dataOf(octets);
  const id = idOf(data);
  return isObject(data) && typeof data.type === 'string' && id !== undefined
    ? { type: data.type, id }
    : undefined;
}

/** Parsing takes some milliseconds: a longer document is searched for `data` in slices, and a longer `data` is not parsed. */
const longestDocumentBytes = 16_384;
const longestDataBytes = 262_144;

function dataOf(octets: Buffer): Eventually<unknown> {
  if (octets.length <= longestDocumentBytes) return parseJsonObject(octets.toString('utf8'))?.data;
  return andThen(finishInSlices(findData(octets)), (data) =>
    data !== undefined && data.length <= longestDataBytes ? parseJson(data.toString('utf8')) : undefined,
  );
}

function idOf(resource: unknown): string | undefined {
  if (!isObject(resource)) return undefined;
  const { id } = resource;
  if (typeof id === 'number') return String(id);
  return typeof id === 'string' && fitsInPath(id) ? id : undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;

/** Octets that are searched in one step, in some 50 microseconds. */
const stepBytes = 16_384;

/**
 * The octets of the first `data` of a JSON object, in small steps: `JSON.parse` of some megabytes makes a million objects and
 * blocks the event loop. If the text is not JSON, the result may be anything. Exported for its tests.
 */
export function* findData(octets: Buffer): Steps<Buffer | undefined> {
  let isInString = false;
  let depth = 0;
  let stringAt = 0;
  let dataAt = -1;
  let nextStep = stepBytes;
  for (let at = 0; at < octets.length; at += 1) {
    if (at >= nextStep) {
      nextStep = at + stepBytes;
      yield;
    }
    const octet = octets[at] as number;
    if (isInString) {
      if (octet === backslash) at += 1;
      else if (octet === quote) isInString = false;
      continue;
    }
    // An opening brace or bracket and the one that closes it differ by 2.
    const isClosing = (octet | 0x20) === openBrace + 2;
    if (octet === quote) {
      isInString = true;
      stringAt = at;
    } else if ((octet | 0x20) === openBrace) depth += 1;
    else if (octet === colon && depth === 1 && dataAt < 0) {
      if (octets.toString('latin1', stringAt, Math.min(at, stringAt + 6)) === '"data"') dataAt = at + 1;
    } else if ((isClosing || octet === comma) && depth === 1 && dataAt >= 0) {
      return octets.subarray(dataAt, at);
    } else if (isClosing) depth -= 1;
  }
  return undefined;
}
