import { type Method, methods } from './canonical-request.ts';
import { STATUS_CODES } from './node-http.ts';
import {
  type Answer,
  type ErrorFormat,
  errorMediaTypes,
  type RejectionName,
  type RejectionRow,
  type Rejections,
  rejectionTable,
} from './rejection.ts';

type BodyOptions = { readonly format?: ErrorFormat; readonly extensionMethods?: readonly Method[] };

/** The same in every installation; docs/reasons.md explains the name that follows. */
const typeBase = 'urn:shopward:reason:';

export function reasonPhraseOf(status: number): string {
  return STATUS_CODES[status] ?? '';
}

/** The bodies of all refusals, made once, so that a refusal costs a look-up. */
export class RejectionBodies {
  /** Every method that is accepted, for the field `Allow` (RFC 9110 section 15.5.6). */
  readonly allow: string;
  readonly #rejections: Rejections;
  readonly #format: ErrorFormat;
  readonly #answers: Readonly<Record<RejectionName, Answer>>;

  /** `extensionMethods`: methods beyond the usual ones that are accepted. */
  constructor(rejections: Rejections, { format = 'jsonapi', extensionMethods = [] }: BodyOptions = {}) {
    this.allow = [...methods, ...extensionMethods].join(', ');
    this.#rejections = rejections;
    this.#format = format;
    const answers = Object.entries(rejections).map(([name, row]) => [name, render(name, row, format)]);
    this.#answers = Object.fromEntries(answers);
  }

  of(name: RejectionName, hint?: string): Answer {
    const row = this.#rejections[name];
    // A configured text, perhaps in another language, stays as it is.
    if (hint === undefined || row.detail !== rejectionTable[name].detail) return this.#answers[name];
    return render(name, { ...row, detail: `${row.detail} ${hint}` }, this.#format);
  }
}

function render(name: string, row: RejectionRow, format: ErrorFormat): Answer {
  const body = Buffer.from(JSON.stringify(errorBody(format, name, row)));
  const fields = ['Content-Type', errorMediaTypes[format], 'Content-Length', String(body.length)];
  return { status: row.status, fields, body };
}

function errorBody(format: ErrorFormat, name: string, { status, code, detail }: RejectionRow): object {
  // The contract's three members.
  if (format === 'jsonapi') return { errors: [{ detail, status, code }] };
  const type = `${typeBase}${name}`;
  if (format === 'json') return { status, code, detail, type };
  // A status of the shop's own has no phrase; RFC 9457 section 3.1.4 wants a title that does not change.
  return { type, title: reasonPhraseOf(status) || 'Refused', status, detail, code };
}
