/** The four resource types that a SEF URL can lead to (contract: Resource `url-resolver`). */
export const entityTypes = ['abstract-products', 'category-nodes', 'cms-pages', 'merchants'] as const;
export type EntityType = (typeof entityTypes)[number];

/** What a URL leads to. */
export interface Mapping {
  readonly entityType: EntityType;
  readonly entityId: string;
}

/** Longest `url` that is asked or stored, in bytes of UTF-8. */
export const maxUrlBytes = 2048;
/** Longest entity id, in UTF-16 units. */
const maxEntityIdLength = 255;

export function isEntityType(value: unknown): value is EntityType {
  return typeof value === 'string' && (entityTypes as readonly string[]).includes(value);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacter = /[\x00-\x1f\x7f]/;

/** A non-empty, well-formed string without control characters, of at most 255 UTF-16 units. */
export function isEntityId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= maxEntityIdLength &&
    !controlCharacter.test(value) &&
    value.isWellFormed()
  );
}

/** Whether `url` takes at most `maxUrlBytes` in UTF-8. */
export function isShortEnough(url: string): boolean {
  if (url.length > maxUrlBytes) return false;
  return url.length * 3 <= maxUrlBytes || Buffer.byteLength(url) <= maxUrlBytes;
}
