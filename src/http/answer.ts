import type { FieldList } from './field-list.ts';

/** A response that shopward gives by itself, and that is no refusal. */
export interface Answer {
  readonly status: number;
  /** Every field but Date and the connection's; Content-Length is there (for HEAD too), not with 304. */
  readonly fields: FieldList;
  /** Bytes, or US-ASCII text. Null: no content (HEAD, 304). */
  readonly body: Buffer | string | null;
}

export function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value;
}
