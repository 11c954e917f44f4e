/** A request as a reader gets it; lines of JSON to those of other languages. */
export interface WireRequest {
  readonly method: string;
  /** Without the question mark. */
  readonly query: string;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** base64. */
  readonly body: string;
}

/** A program that reads requests as a shop of its language would, in every way that its libraries offer. */
export interface TokenReader {
  /** For each request the tokens that some reading of it would exchange, as texts. */
  read(requests: readonly WireRequest[]): Promise<readonly (readonly string[])[]>;
  close(): Promise<void>;
}
