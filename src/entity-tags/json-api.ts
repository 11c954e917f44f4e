import { maxPathOctets } from '../http/request-target.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import { isObject, parseJsonObject } from '../lib/json.ts';
import { finishInSlices } from '../lib/slices.ts';
import { scanPrimaryData } from './primary-data.ts';

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
