import { maxPathOctets } from '../http/request-target.ts';
import { type Eventually, andThen } from '../lib/eventually.ts';
import { isObject, parseJson, parseJsonObject } from '../lib/json.ts';
import { type Steps, finishInSlices } from '../lib/slices.ts';

/** Whether some path could name a member with this id: none could with a longer one, so it is nobody's. */
export function fitsInPath(id: string): boolean {
  return id !== '' && id.length < maxPathOctets;
}

/** Id of the one member that a JSON:API collection document holds, else undefined (none, several, not JSON:API). */
export function singleMemberId(octets: Buffer): Eventually<string | undefined> {
  return andThen(dataOf(octets), (data) =>
    Array.isArray(data) && data.length === 1 ? idOf(data[0]) : undefined,
  );
}

/** Id of the resource of a JSON:API document, as an answer to a POST holds it. */
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

/** Octets that are parsed at once, at most some milliseconds' work; what is longer is scanned in slices. */
const parsedAtOnceBytes = 65_536;

/** `data` of the document; of a long one only what `scanPrimaryData` keeps. */
function dataOf(octets: Buffer): Eventually<unknown> {
  if (octets.length > parsedAtOnceBytes) return finishInSlices(scanPrimaryData(octets));
  return parseJsonObject(octets.toString('utf8'))?.data;
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

/** Octets that are looked at in one step: some 50 microseconds. */
const stepBytes = 16_384;
/** The longest spelling of `"type"`, with an escape for each letter; longer names are skipped. */
const longestName = 26;
/** No path could name a longer id. */
const longestLeaf = 65_536;

/**
 * `data` of a JSON:API document, of which only `type` and `id` of a sole resource are kept, in small steps: `JSON.parse`
 * of some megabytes makes a million objects, and stops everything else meanwhile. Of a document that is no JSON the
 * result may be anything that its text names, as no client could read it. A list of several keeps empty resources. Exported for its tests.
 */
export function* scanPrimaryData(octets: Buffer): Steps<unknown> {
  let resources: Record<string, unknown>[] = [];
  let isData = false;
  let isList = false;
  let isInString = false;
  let depth = 0;
  let stringAt = 0;
  let stringEnd = 0;
  let valueAt = 0;
  let nextStep = stepBytes;
  let name: unknown;
  for (let at = 0; at < octets.length; at += 1) {
    if (at >= nextStep) {
      nextStep = at + stepBytes;
      yield;
    }
    const octet = octets[at] as number;
    if (isInString) {
      if (octet === backslash) at += 1;
      else if (octet === quote) {
        isInString = false;
        stringEnd = at + 1;
      }
      continue;
    }
    const isInResource = isData && resources.length === 1 && depth === (isList ? 3 : 2);
    // An opening brace or bracket and the one that closes it differ by 2.
    const isOpening = (octet | 0x20) === openBrace;
    const isClosing = (octet | 0x20) === openBrace + 2;
    if (octet === quote) {
      isInString = true;
      stringAt = at;
    } else if (octet === colon && depth === 1) {
      isData = leafOf(octets, stringAt, stringEnd, longestName) === 'data';
      if (isData) {
        isList = false;
        resources = [];
      }
    } else if (octet === colon && isInResource) {
      name = leafOf(octets, stringAt, stringEnd, longestName);
      valueAt = at + 1;
    } else if (isOpening) {
      if (isData && depth === 1) isList = octet !== openBrace;
      const isResource = isData && octet === openBrace && depth === (isList ? 2 : 1);
      if (isResource && resources.length === 0) resources = [{}];
      depth += 1;
    } else if (isClosing || octet === comma) {
      const [resource] = resources;
      if (isInResource && resource !== undefined && (name === 'type' || name === 'id'))
        resource[name] = leafOf(octets, valueAt, at, longestLeaf);
      if (isInResource) name = undefined;
      if (isClosing) depth -= 1;
      else if (isData && isList && depth === 2) resources = [{}, {}];
    }
  }
  if (depth !== 0 || isInString) return undefined;
  return isList ? resources : resources[0];
}

function leafOf(octets: Buffer, start: number, end: number, longest: number): unknown {
  return end - start > longest ? '' : parseJson(octets.toString('utf8', start, end));
}
