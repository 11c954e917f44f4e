import type { Attributes } from './attributes.ts';
import { refuse } from './shop-error.ts';

export type JsonApiBody = { readonly attributes: Attributes; readonly ids: readonly string[] };

export const emptyBody: JsonApiBody = { attributes: {}, ids: [] };

/** Reads the body of POST and PATCH: `data.type` must be the type of the route. */
export function readResourceBody(json: unknown, type: string): JsonApiBody {
  const data = dataOf(json);
  if (!isRecord(data)) refuse('invalidBody');
  if (data.type !== type) refuse('invalidType');
  const attributes = isRecord(data.attributes) ? data.attributes : {};
  return { attributes, ids: typeof data.id === 'string' ? [data.id] : [] };
}

/** Reads which resources a DELETE names, as one object or a list of them. */
export function readLinkedIds(json: unknown, type: string): JsonApiBody {
  const data = dataOf(json);
  const list = Array.isArray(data) ? data : [data];
  const ids = list.filter(isRecord).filter((each) => each.type === type);
  return { attributes: {}, ids: ids.map((each) => each.id).filter((id) => typeof id === 'string') };
}

function dataOf(json: unknown): unknown {
  return isRecord(json) ? json.data : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
