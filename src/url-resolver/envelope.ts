import { isDeepStrictEqual } from 'node:util';
import { isContainer, isObject } from '../lib/json.ts';
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

/** JSON pointers (RFC 6901) to the members of a shop's document, which may have no others. */
export interface EnvelopePointers {
  readonly entityType: string;
  readonly entityId: string;
  /** To the URL that was asked for. */
  readonly url?: string | undefined;
  /** To the negotiated locale. */
  readonly locale?: string | undefined;
}

/** What a document contains besides its mapping. */
export interface DocumentContext {
  readonly url: string;
  readonly locale: string;
  /** `links.self`, escaped for a JSON string. */
  readonly self: string;
}

/** The form of the documents, the shop's and ours. */
export interface Envelope {
  readonly contentType: string;
  /** Whether shop and shopward answer 404 and 422 with the codes of the contract. */
  readonly hasContractErrors: boolean;
  /** Undefined: the document is of another form, or leads to a type that is not configured. */
  read(document: unknown, asked: Omit<DocumentContext, 'self'>): Mapping | undefined;
  /** JSON in US-ASCII. */
  write(mapping: Mapping, context: DocumentContext): string;
}

/** Creates the contract's envelope, or that of a plain JSON document with members at these pointers. */
export function createEnvelope(
  form: 'jsonapi' | EnvelopePointers,
  entityTypes: readonly string[] = contractEntityTypes,
): Envelope {
  return form === 'jsonapi' ? createContractEnvelope(entityTypes) : createPlainEnvelope(form, entityTypes);
}

function createContractEnvelope(entityTypes: readonly string[]): Envelope {
  const openings = new Map(
    entityTypes.map((type) => [
      type,
      `{"data":[{"type":"url-resolver","id":null,"attributes":{"entityType":"${jsonText(type)}","entityId":"`,
    ]),
  );
  return {
    contentType: 'application/vnd.api+json',
    hasContractErrors: true,
    read(document) {
      const data = isObject(document) ? document.data : undefined;
      const element: unknown = Array.isArray(data) && data.length === 1 ? data[0] : undefined;
      if (!isObject(element) || element.type !== 'url-resolver' || !isObject(element.attributes)) {
        return undefined;
      }
      const { entityType, entityId } = element.attributes;
      return toMapping(entityType, entityId, entityTypes);
    },
    write({ entityType, entityId }, { self }) {
      const opening = openings.get(entityType);
      return `${opening}${jsonText(entityId)}"},"links":{"self":"${self}"}}],"links":{"self":"${self}"}}`;
    },
  };
}

/**
 * Accepts a document only if it is, member for member, the one that would be written, so that the cache answers what the shop
 * would. A document with anything else is left to the shop.
 */
function createPlainEnvelope(pointers: EnvelopePointers, entityTypes: readonly string[]): Envelope {
  const paths = Object.entries(pointers).flatMap(([name, pointer]) =>
    pointer === undefined ? [] : [[name as keyof EnvelopePointers, segmentsOf(pointer)] as const],
  );
  const build = (values: Readonly<Record<keyof EnvelopePointers, string>>): unknown => {
    const outermost: { document?: unknown } = {};
    for (const [name, segments] of paths) place(outermost, ['document', ...segments], values[name]);
    return outermost.document;
  };
  return {
    contentType: 'application/json',
    hasContractErrors: false,
    read(document, { url, locale }) {
      const type = valueAt(document, segmentsOf(pointers.entityType));
      const id = valueAt(document, segmentsOf(pointers.entityId));
      const mapping = toMapping(type, id, entityTypes);
      if (mapping === undefined) return undefined;
      return isDeepStrictEqual(document, build({ ...mapping, url, locale })) ? mapping : undefined;
    },
    write: (mapping, { url, locale }) =>
      JSON.stringify(build({ ...mapping, url, locale })).replace(everyUnsafe, escapeUnit),
  };
}

/** Letters, digits and a few marks: nothing that a pointer or JSON escapes. `0` is the one element of a list. */
const pointerForm = /^(?:\/[A-Za-z0-9_.:@-]{1,64}){1,8}$/;

/** Why no document can be built from these pointers; undefined: one can. */
export function findPointerProblem(pointers: readonly string[]): string | undefined {
  const malformed = pointers.find(
    (pointer) => !pointerForm.test(pointer) || segmentsOf(pointer).includes('__proto__'),
  );
  if (malformed !== undefined) return `${malformed} is not a JSON pointer such as /data/0/type`;
  for (const [index, one] of pointers.entries()) {
    for (const other of pointers.slice(0, index)) {
      const [a, b] = [segmentsOf(one), segmentsOf(other)];
      const parting = a.findIndex((segment, depth) => segment !== b[depth]);
      const [here, there] = [a[parting], b[parting]];
      if (here === undefined || there === undefined || here === '0' || there === '0') {
        return `${other} and ${one} cannot stand in one document`;
      }
    }
  }
  return undefined;
}

const segmentsOf = (pointer: string) => pointer.slice(1).split('/');

function valueAt(document: unknown, segments: readonly string[]): unknown {
  let value = document;
  for (const segment of segments) {
    if (!isContainer(value) || !Object.hasOwn(value, segment)) return undefined;
    value = value[segment];
  }
  return value;
}

function place(into: object, segments: readonly string[], value: string): void {
  let container = into as Record<string, unknown>;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined) container[segment] = value;
    else {
      container[segment] ??= next === '0' ? [] : {};
      container = container[segment] as Record<string, unknown>;
    }
  }
}

/** Longest entity id, in UTF-16 units. */
const maxEntityIdLength = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacter = /[\x00-\x1f\x7f]/;

/** The mapping, if the type is configured and the id is well-formed: 1 to 255 UTF-16 units, no control characters. */
export function toMapping(
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
/** The same in a whole JSON text, where quotes and backslashes have their meaning. */
const everyUnsafe = /[^\x20-\x3b\x3d\x3f-\x7e]/g;

/**
 * The inside of a JSON string (RFC 8259 section 7) in US-ASCII: quote, backslash, `<`, `>`, controls and all beyond ASCII
 * (U+2028, lone surrogates) are written as `\uXXXX`.
 */
export function jsonText(text: string): string {
  return special.test(text) ? text.replace(everySpecial, escapeUnit) : text;
}
