import Negotiator from 'negotiator';
import { type Method, methods } from './canonical-request.ts';
import { STATUS_CODES } from './node-http.ts';
import {
  type Answer,
  type ErrorFormat,
  errorFormats,
  errorMediaTypes,
  type RejectionName,
  type RejectionRow,
  type Rejections,
  rejectionTable,
} from './rejection.ts';

/** Exported for its tests. */
export interface RejectionBodyOptions {
  /** One form for everybody, or what each client's `Accept` prefers. Default: `jsonapi`. */
  readonly format?: ErrorFormat | 'negotiate';
  /** Methods beyond the usual ones that are accepted. Default: none. */
  readonly extensionMethods?: readonly Method[];
}

/** The same in every installation; docs/reasons.md has the row of the name that stands after it. */
const typeBase = 'urn:shopward:reason:';

/** RFC 9110 renamed these. */
const reasonPhrases: Readonly<Record<number, string>> = {
  413: 'Content Too Large',
  422: 'Unprocessable Content',
};

export function reasonPhraseOf(status: number): string {
  return reasonPhrases[status] ?? STATUS_CODES[status] ?? '';
}

/** The bodies of all refusals, made once, so that a refusal costs a look-up. */
export class RejectionBodies {
  /** Every method that is accepted, for the field `Allow` (RFC 9110 section 15.5.6). */
  readonly allow: string;
  readonly #ofFormat: ReadonlyMap<ErrorFormat, Readonly<Record<RejectionName, Answer>>>;
  /** What clients accept is asked. */
  readonly #isNegotiated: boolean;
  readonly #only: ErrorFormat;
  readonly #render: (name: RejectionName, format: ErrorFormat, hint: string) => Answer;

  constructor(
    rejections: Rejections,
    { format = 'jsonapi', extensionMethods = [] }: RejectionBodyOptions = {},
  ) {
    this.allow = [...methods, ...extensionMethods].join(', ');
    this.#isNegotiated = format === 'negotiate';
    this.#only = format === 'negotiate' ? 'jsonapi' : format;
    const wanted = format === 'negotiate' ? errorFormats : [format];
    const more = this.#isNegotiated ? ['Vary', 'Accept'] : [];
    this.#ofFormat = new Map(wanted.map((one) => [one, renderAll(rejections, one, more)]));
    this.#render = (name, one, hint) => {
      const row = rejections[name];
      // A text of the shop team's own, perhaps in another language, stays as it is.
      const isOwn = row.detail !== rejectionTable[name].detail;
      return render(name, isOwn ? row : { ...row, detail: `${row.detail} ${hint}` }, one, more);
    };
  }

  /** `accept`: the field of the request; undefined if it has none, or if no field could be read. */
  of(name: RejectionName, accept: string | undefined, hint?: string): Answer {
    const format = this.#isNegotiated && accept !== undefined ? negotiateFormat(accept) : this.#only;
    if (hint !== undefined) return this.#render(name, format, hint);
    return (this.#ofFormat.get(format) as Readonly<Record<RejectionName, Answer>>)[name];
  }
}

function renderAll(
  rejections: Rejections,
  format: ErrorFormat,
  more: readonly string[],
): Readonly<Record<RejectionName, Answer>> {
  const answers = Object.entries(rejections).map(([name, row]) => [name, render(name, row, format, more)]);
  return Object.fromEntries(answers);
}

function render(name: string, row: RejectionRow, format: ErrorFormat, more: readonly string[]): Answer {
  const body = Buffer.from(JSON.stringify(errorBody(format, name, row)));
  const fields = ['Content-Type', errorMediaTypes[format], 'Content-Length', String(body.length), ...more];
  return { status: row.status, fields, body };
}

/** The body of a refusal: the contract's error object, or the same in another form. */
function errorBody(format: ErrorFormat, name: string, { status, code, detail }: RejectionRow): object {
  // The contract's three members.
  if (format === 'jsonapi') return { errors: [{ detail, status, code }] };
  const type = `${typeBase}${name}`;
  if (format === 'json') return { status, code, detail, type };
  // A status of the shop's own has no phrase; RFC 9457 section 3.1.4 wants a title that does not change.
  return { type, title: reasonPhraseOf(status) || 'Refused', status, detail, code };
}

/** Longer values of `Accept` are not read: no client's library sends them. */
const longestField = 512;
const rememberedFields = 512;
const remembered = new Map<string, ErrorFormat>();
const mediaTypes = Object.values(errorMediaTypes);

/**
 * The form that an `Accept` prefers (RFC 9110 section 12.5.1). Where it takes none of them, or all alike, the default
 * one: a refusal without a body would not help (section 15.5.7 leaves it to the server). Exported for its tests.
 */
export function negotiateFormat(accept: string): ErrorFormat {
  if (accept === '*/*' || accept.length > longestField) return 'jsonapi';
  const known = remembered.get(accept);
  if (known !== undefined) return known;
  const [preferred] = new Negotiator({ headers: { accept } }).mediaTypes(mediaTypes);
  const format = errorFormats.find((one) => errorMediaTypes[one] === preferred) ?? 'jsonapi';
  if (remembered.size >= rememberedFields) remembered.clear();
  remembered.set(accept, format);
  return format;
}
