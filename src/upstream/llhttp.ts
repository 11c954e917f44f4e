import { readFileSync } from 'node:fs';

/** The types used here: TypeScript has them only in its library for browsers. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: unknown;
  }
}

/** Address of a parser in the memory of WebAssembly. */
export type ParserAddress = number;

/** The parser's callbacks. `start` is a position in the buffer. A result but 0 stops the parser, except 1 of `onHeadComplete`: no body. */
export interface ParserEvents {
  onStatus(start: number, length: number): number;
  onFieldName(start: number, length: number): number;
  onFieldValue(start: number, length: number): number;
  onHeadComplete(status: number): number;
  onBody(start: number, length: number): number;
  onComplete(): number;
}

/** The values of `llhttp_errno` that the client distinguishes. */
export const parserError = { none: 0, paused: 21, callback: -1 } as const;

/** Maximum bytes of a buffer that is parsed. */
export const longestRead = 65_536;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  llhttp_alloc(type: number): ParserAddress;
  llhttp_free(parser: ParserAddress): void;
  llhttp_reset(parser: ParserAddress): void;
  llhttp_execute(parser: ParserAddress, buffer: number, length: number): number;
  llhttp_finish(parser: ParserAddress): number;
  llhttp_should_keep_alive(parser: ParserAddress): number;
  llhttp_get_error_pos(parser: ParserAddress): number;
  llhttp_get_error_reason(parser: ParserAddress): number;
}

const typeResponse = 2;

/**
 * llhttp, Node's own parser, which Node does not export. llhttp.wasm is the strict build in undici 8.12.4
 * (lib/llhttp/llhttp_simd-wasm.js; licence in llhttp.LICENSE), SHA-256
 * 18403ee56fab07f89a845028bad358bb3ebcda213f8e2ec0989a991e9c33da69.
 */
class Llhttp {
  readonly #exports: Exports;
  readonly #buffer: number;
  #memory: Uint8Array;
  /** Receives the events while a parser runs; only one runs at a time. */
  #events!: ParserEvents;

  constructor() {
    const module = new WebAssembly.Module(readFileSync(new URL('./llhttp.wasm', import.meta.url)));
    this.#exports = new WebAssembly.Instance(module, { env: this.#imports() }).exports as Exports;
    this.#buffer = this.#exports.malloc(longestRead);
    this.#memory = new Uint8Array(this.#exports.memory.buffer);
  }

  allocate(): ParserAddress {
    return this.#exports.llhttp_alloc(typeResponse);
  }

  free(parser: ParserAddress): void {
    this.#exports.llhttp_free(parser);
  }

  reset(parser: ParserAddress): void {
    this.#exports.llhttp_reset(parser);
  }

  execute(parser: ParserAddress, events: ParserEvents, buffer: Buffer, length: number): number {
    // If WebAssembly memory has grown, the old buffer is detached and has length 0.
    if (this.#memory.length === 0) this.#memory = new Uint8Array(this.#exports.memory.buffer);
    this.#memory.set(length === buffer.length ? buffer : buffer.subarray(0, length), this.#buffer);
    this.#events = events;
    return this.#exports.llhttp_execute(parser, this.#buffer, length);
  }

  finish(parser: ParserAddress, events: ParserEvents): number {
    this.#events = events;
    return this.#exports.llhttp_finish(parser);
  }

  shouldKeepAlive(parser: ParserAddress): boolean {
    return this.#exports.llhttp_should_keep_alive(parser) === 1;
  }

  /** How many bytes of the last buffer the parser had read when it stopped. */
  consumed(parser: ParserAddress): number {
    return this.#exports.llhttp_get_error_pos(parser) - this.#buffer;
  }

  /** llhttp's reason for an error: a constant text, never bytes from the upstream. */
  reasonOf(parser: ParserAddress): string {
    const start = this.#exports.llhttp_get_error_reason(parser);
    const bytes = Buffer.from(this.#exports.memory.buffer);
    return start === 0 ? 'not HTTP/1.1' : bytes.toString('latin1', start, bytes.indexOf(0, start));
  }

  #imports(): Record<string, (parser: number, ...values: number[]) => number> {
    return {
      wasm_on_message_begin: () => 0,
      wasm_on_url: () => 0,
      wasm_on_status: (_, at = 0, length = 0) => this.#events.onStatus(at - this.#buffer, length),
      wasm_on_header_field: (_, at = 0, length = 0) => this.#events.onFieldName(at - this.#buffer, length),
      wasm_on_header_value: (_, at = 0, length = 0) => this.#events.onFieldValue(at - this.#buffer, length),
      wasm_on_headers_complete: (_, status = 0) => this.#events.onHeadComplete(status),
      wasm_on_body: (_, at = 0, length = 0) => this.#events.onBody(at - this.#buffer, length),
      wasm_on_message_complete: () => this.#events.onComplete(),
    };
  }
}

export const llhttp = new Llhttp();
