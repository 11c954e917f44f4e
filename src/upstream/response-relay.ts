import type { Method } from '../http/canonical-request.ts';
import { editFields, type FieldEdits, type FieldList, fieldValue } from '../http/field-list.ts';
import type { ClientResponse } from './client-response.ts';
import type { ForwardCaller, ForwardInput } from './forward.ts';
import type { ForwardOutcome, ResponseEdits } from './hooks.ts';
import { CollectedBody } from './request-body.ts';
import { endToEndFields } from './response-fields.ts';
import { isBodiless } from './response-framing.ts';

interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly fields: FieldList;
}

/** An upstream's response on its way to the client: streamed, or held back until `onOutcome` has had its say. */
export class ResponseRelay {
  readonly #input: ForwardInput;
  readonly #client: ClientResponse;
  readonly #caller: ForwardCaller;
  #head: ResponseHead | undefined;
  /** Body held back; undefined while the response streams. */
  #held: CollectedBody | undefined;
  /** Too long to be held back, and not to be passed on: what comes is thrown away. */
  #isWithheld = false;

  constructor(input: ForwardInput, client: ClientResponse, caller: ForwardCaller) {
    this.#input = input;
    this.#client = client;
    this.#caller = caller;
  }

  /** The upstream's status; 0 before its head. */
  get status(): number {
    return this.#head?.status ?? 0;
  }

  /** Whether the body will be held back. */
  begin(status: number, reason: string, fields: FieldList): boolean {
    const head = { status, reason, fields: endToEndFields(fields, status) };
    this.#head = head;
    const { hooks, request } = this.#input;
    const isHeld = hooks !== undefined && isCollectable(request.method, head, hooks.bufferLimit);
    if (isHeld) this.#held = new CollectedBody(hooks.bufferLimit);
    else this.#passOn(head);
    return isHeld;
  }

  /** `false`: wait until the client has drained. */
  write(chunk: Buffer): boolean {
    if (this.#isWithheld) return true;
    if (this.#held === undefined) return this.#stream(chunk);
    this.#held.add(chunk);
    return this.#held.length <= (this.#input.hooks?.bufferLimit ?? 0) || this.passThrough();
  }

  /** The body is too long, or too slow, to be held back. */
  passThrough(): boolean {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined || this.#head === undefined) return true;
    this.#passOn(this.#head);
    return held.length === 0 || this.write(held.octets());
  }

  /** Whether a refusal may still take the response's place. */
  get mayBeReplaced(): boolean {
    return this.#held !== undefined || this.#isWithheld;
  }

  #stream(chunk: Buffer): boolean {
    const mayGoOn = this.#client.write(chunk);
    this.#input.hooks?.onChunk?.(chunk);
    return mayGoOn;
  }

  /** What `onOutcome` is told of a whole response. */
  outcome(): ForwardOutcome | undefined {
    if (this.#head === undefined) return undefined;
    const { status, fields } = this.#head;
    return { kind: 'answered', status, fields, body: this.#heldBody() };
  }

  end(edits: ResponseEdits): void {
    const body = this.#heldBody();
    if (body === null || this.#head === undefined) {
      this.#client.end();
      return;
    }
    const answer = answerFields(this.#input.request.method, this.#head, body, edits);
    this.#client.send(answer.status, answer.reason, this.#finalFields(answer, undefined), answer.body);
  }

  #heldBody(): Buffer | null {
    return this.#held?.octets() ?? null;
  }

  #passOn(head: ResponseHead): void {
    this.#isWithheld = this.#input.hooks?.withholds?.(head.status) === true;
    if (!this.#isWithheld) this.#beginStream(head);
  }

  #beginStream(head: ResponseHead): void {
    this.#client.begin(
      head.status,
      head.reason,
      this.#finalFields(head, this.#input.hooks?.streamedHeaderEdits),
    );
  }

  #finalFields(head: ResponseHead, edits: FieldEdits | undefined): FieldList {
    const fields = edits === undefined ? head.fields : editFields(head.fields, edits);
    return this.#caller.editResponse?.(fields, head.status) ?? fields;
  }
}

/** Whether a response may be held back: not endless, and not announced to be longer than `limitBytes`. */
function isCollectable(method: Method, head: ResponseHead, limitBytes: number): boolean {
  if (limitBytes <= 0) return false;
  if (isBodiless(method, head.status)) return true;
  if (fieldValue(head.fields, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true)
    return false;
  return Number(fieldValue(head.fields, 'content-length') ?? 0) <= limitBytes;
}

/** The response that `onOutcome` leaves behind: its edits applied, its body framed by Content-Length. */
function answerFields(
  method: Method,
  head: ResponseHead,
  body: Buffer,
  edits: ResponseEdits,
): ResponseHead & { readonly body: Buffer | undefined } {
  const fields = edits.fields === undefined ? head.fields : editFields(head.fields, edits.fields);
  if (edits.notModified === true) {
    return { status: 304, reason: 'Not Modified', fields: notModifiedFields(fields), body: undefined };
  }
  if (isBodiless(method, head.status)) return { ...head, fields, body: undefined };
  return { ...head, fields: editFields(fields, { 'Content-Length': String(body.length) }), body };
}

/** A 304 repeats what a cache updates, not what describes the body that is not there (RFC 9110 section 15.4.5). */
function notModifiedFields(fields: FieldList): FieldList {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const lower = (fields[i] as string).toLowerCase();
    const describesBody = lower.startsWith('content-') && lower !== 'content-location';
    if (!describesBody || lower === 'content-security-policy')
      kept.push(fields[i] as string, fields[i + 1] as string);
  }
  return kept;
}
