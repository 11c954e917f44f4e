import { type EntityType, entityTypes, type Mapping } from '../mapping.ts';
import { jsonText } from './json-text.ts';

const openings = Object.fromEntries(
  entityTypes.map((type) => [
    type,
    `{"data":[{"type":"url-resolver","id":null,"attributes":{"entityType":"${type}","entityId":"`,
  ]),
) as Record<EntityType, string>;

/** The contract's envelope (Resource `url-resolver`); `self` is JSON text already. */
export function writeDocument(mapping: Mapping, self: string): string {
  const { entityType, entityId } = mapping;
  return `${openings[entityType]}${jsonText(entityId)}"},"links":{"self":"${self}"}}],"links":{"self":"${self}"}}`;
}
