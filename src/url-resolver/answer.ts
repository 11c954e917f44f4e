import type { FieldList } from '../request/field-list.ts';

/** A response of shopward's own that is no refusal. */
export interface Answer {
  readonly status: number;
  /** Every field but Date and the connection's; Content-Length is there (for HEAD too), not with 304. */
  readonly fields: FieldList;
  /** US-ASCII text: its length is its length in bytes. Null: no content (HEAD, 304). */
  readonly body: string | null;
}
