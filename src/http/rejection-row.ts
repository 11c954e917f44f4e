/** A refusal as clients see it. */
export interface RejectionRow {
  readonly status: number;
  /** Application error code of the error object. */
  readonly code: string;
  /** Text for people; it never contains a part of the request. */
  readonly detail: string;
}

/** A row as it is written in a table. Without a code, the rejection's name is the code. */
export interface WrittenRow {
  readonly kind: 'refusal' | 'outage' | 'answer';
  readonly status: number;
  readonly detail: string;
  readonly code?: string;
}

/** A rule or a limit turned the request away. */
export function refusal(status: number, detail: string, code?: string): WrittenRow {
  return { kind: 'refusal', status, detail, ...(code !== undefined && { code }) };
}

/** Something that shopward needs is broken, and the client did nothing wrong. */
export function outage(status: number, detail: string): WrittenRow {
  return { kind: 'outage', status, detail };
}

/** A regular answer of one of shopward's endpoints, such as "there is no such URL". */
export function ownAnswer(status: number, detail: string, code: string): WrittenRow {
  return { kind: 'answer', status, detail, code };
}
