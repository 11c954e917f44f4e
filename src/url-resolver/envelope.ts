import { hash } from 'node:crypto';
import { isObject } from '../lib/json.ts';
import { escapeUnit } from '../lib/text.ts';

/** The resource types that a SEF URL can lead to, by the contract of the resource `url-resolver`. */
export const contractEntityTypes: readonly string[] = [
  'abstract-products',
  'category-nodes',
  'cms-pages',
  'merchants',
];

/** What a URL leads to. */
export interface Mapping {
  readonly entityType: string;
  readonly entityId: string;
}

export const contentType = 'application/vnd.api+json';

/** The mapping of a document; undefined: it is of another form, or leads to a type that is not configured. */
export function readDocument(document: unknown, entityTypes: readonly string[]): Mapping | undefined {
  const data = isObject(document) ? document.data : undefined;
  const element: unknown = Array.isArray(data) && data.length === 1 ? data[0] : undefined;
  if (!isObject(element) || element.type !== 'url-resolver' || !isObject(element.attributes))
    return undefined;
  const { entityType, entityId } = element.attributes;
  return toMapping(entityType, entityId, entityTypes);
}

/** A document in US-ASCII. `self` is escaped for a JSON string. */
export function writeDocument({ entityType, entityId }: Mapping, self: string): string {
  const attributes = `{"entityType":"${jsonText(entityType)}","entityId":"${jsonText(entityId)}"}`;
  const links = `{"self":"${self}"}`;
  return `{"data":[{"type":"url-resolver","id":null,"attributes":${attributes},"links":${links}}],"links":${links}}`;
}

/**
 * Builds the strong entity tag (RFC 9110 section 8.8.3) of a document: a digest of the mapping, the locale (Content-Language)
 * and `salt` (what the configuration puts into every document), which determine its bytes for one target URI. 60 bits: V8
 * keeps a longer text in parts, which takes twice the memory.
 */
export function createMappingTag(salt: string): (mapping: Mapping, locale: string) => string {
  return ({ entityType, entityId }, locale) => {
    const text = `${salt}\0${entityType}\0${entityId}\0${locale}`;
    return `"${hash('sha256', text, 'base64url').slice(0, 10)}"`;
  };
}

/** Bytes of UTF-8 of the longest `url` that is looked up or stored. */
export const maxUrlBytes = 2048;
/** Whether `url` has at most `maxUrlBytes` in UTF-8. */
export function isShortEnough(url: string): boolean {
  if (url.length > maxUrlBytes) return false;
  return url.length * 3 <= maxUrlBytes || Buffer.byteLength(url) <= maxUrlBytes;
}

/** Longest entity id, in UTF-16 units. */
const maxEntityIdLength = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const controlCharacter = /[\x00-\x1f\x7f]/;

/** The mapping, if the type is configured and the id is well-formed: 1 to 255 UTF-16 units, no control characters. */
function toMapping(
  entityType: unknown,
  entityId: unknown,
  entityTypes: readonly string[],
): Mapping | undefined {
  if (typeof entityType !== 'string' || !entityTypes.includes(entityType)) return undefined;
  if (typeof entityId !== 'string' || entityId === '' || entityId.length > maxEntityIdLength)
    return undefined;
  return controlCharacter.test(entityId) || !entityId.isWellFormed() ? undefined : { entityType, entityId };
}

/** All characters that are not safe in a JSON string, in HTML and in a script. */
const special = /[^\x20\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]/;
const everySpecial = new RegExp(special, 'g');

/**
 * The inside of a JSON string (RFC 8259 section 7) in US-ASCII: quote, backslash, `<`, `>`, controls and all beyond ASCII
 * (U+2028, lone surrogates) are written as `\uXXXX`.
 */
export function jsonText(text: string): string {
  return special.test(text) ? text.replace(everySpecial, escapeUnit) : text;
}
