import { editFields, type FieldEdits, type FieldList } from '../http/field-list.ts';
import { answerFields, isCollectable, type ResponseHead } from './answer-fields.ts';
import type { ClientResponse } from './client-response.ts';
import type { ForwardCaller, ForwardInput } from './forwarder.ts';
import type { ForwardOutcome, ResponseEdits } from './hooks.ts';
import { CollectedBody } from './request-body.ts';
import { endToEndFields } from './response-fields.ts';

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
