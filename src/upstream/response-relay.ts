import type { Method } from '../http/canonical-request.ts';
import { editFields, type FieldEdits, type FieldList, fieldValue } from '../http/field-list.ts';
import type { ClientResponse } from './client-response.ts';
import type { ForwardCaller } from './forward.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from './hooks.ts';
import type { ResponseHead } from './port.ts';
import { CollectedBody } from './request-body.ts';
import { isBodiless } from './response-parser.ts';

/** Relays a response that has hooks: streams it, or buffers it until `onOutcome` has decided. */
export class ResponseRelay {
  readonly #hooks: UpstreamHooks;
  readonly #method: Method;
  /** Its fields are end-to-end ones. */
  readonly #head: ResponseHead;
  readonly #downstream: ClientResponse;
  readonly #caller: ForwardCaller;
  /** Body that is kept back; undefined while the response streams. */
  #collected: CollectedBody | undefined;
  /** The body is too long to be kept back and must not be passed on: its bytes are dropped. */
  #isDropped = false;

  constructor(
    hooks: UpstreamHooks,
    method: Method,
    head: ResponseHead,
    downstream: ClientResponse,
    caller: ForwardCaller,
  ) {
    this.#hooks = hooks;
    this.#method = method;
    this.#downstream = downstream;
    this.#caller = caller;
    this.#head = head;
  }

  /** Begins the response. Returns whether its body is kept back. */
  begin(): boolean {
    const { bufferLimit } = this.#hooks;
    const isCollected = isCollectable(this.#method, this.#head, bufferLimit);
    if (isCollected) this.#collected = new CollectedBody(bufferLimit);
    else this.#passOn();
    return isCollected;
  }

  /** `false`: wait until the client has drained. `release`: see `UpstreamHandler.onData`. */
  write(chunk: Buffer, release?: () => void): boolean {
    if (this.#isDropped) return true;
    if (this.#collected === undefined) return this.#downstream.write(chunk, release);
    this.#collected.add(chunk);
    return this.#collected.length <= this.#hooks.bufferLimit || this.passThrough();
  }

  /** Streams the response from now on: its body is too long, or too slow, to be kept back. */
  passThrough(): boolean {
    const collected = this.#collected;
    this.#collected = undefined;
    if (collected === undefined) return true;
    this.#passOn();
    return collected.length === 0 || this.write(collected.octets());
  }

  /** Whether a refusal may still replace the response. */
  get mayBeReplaced(): boolean {
    return this.#collected !== undefined || this.#isDropped;
  }

  /** What `onOutcome` receives of a whole response. */
  outcome(): ForwardOutcome {
    const { status, fields } = this.#head;
    return { kind: 'answered', status, fields, body: this.#collectedBody() };
  }

  end(edits: ResponseEdits): void {
    if (this.#isDropped) throw new TypeError('a withheld response was not refused');
    const body = this.#collectedBody();
    if (body === null) {
      this.#downstream.end();
      return;
    }
    const answer = answerFields(this.#method, this.#head, body, edits);
    this.#downstream.send(answer.status, answer.reason, this.#finalFields(answer), answer.body);
  }

  #collectedBody(): Buffer | null {
    return this.#collected?.octets() ?? null;
  }

  #passOn(): void {
    const { status, reason } = this.#head;
    this.#isDropped = this.#hooks.withholds?.(status) === true;
    if (this.#isDropped) return;
    const edits = this.#hooks.streamedHeaderEdits?.(status);
    this.#downstream.begin(status, reason, this.#finalFields(this.#head, edits));
  }

  #finalFields({ fields, status }: ResponseHead, edits?: FieldEdits): FieldList {
    const edited = edits === undefined ? fields : editFields(fields, edits);
    return this.#caller.editResponse?.(edited, status) ?? edited;
  }
}

/** Whether a response may be kept back: not endless, and not announced to be longer than `limitBytes`. */
function isCollectable(method: Method, head: ResponseHead, limitBytes: number): boolean {
  if (limitBytes <= 0) return false;
  if (isBodiless(method, head.status)) return true;
  if (fieldValue(head.fields, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true)
    return false;
  return Number(fieldValue(head.fields, 'content-length') ?? 0) <= limitBytes;
}

/** The response as `onOutcome` leaves it: its edits applied, its body framed by Content-Length. */
function answerFields(
  method: Method,
  head: ResponseHead,
  body: Buffer,
  edits: ResponseEdits,
): ResponseHead & { readonly body: Buffer | undefined } {
  const { status, reason } = head;
  const hasBody = edits.notModified !== true && !isBodiless(method, status);
  const length = hasBody ? { 'Content-Length': String(body.length) } : undefined;
  const fields = editFields(head.fields, { ...edits.fields, ...length });
  if (edits.notModified !== true) return { status, reason, fields, body: hasBody ? body : undefined };
  return { status: 304, reason: 'Not Modified', fields: notModifiedFields(fields), body: undefined };
}

/** A 304 repeats the fields that a cache updates, not those that describe the absent body (RFC 9110 section 15.4.5). */
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
