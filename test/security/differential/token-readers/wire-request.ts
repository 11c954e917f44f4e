/** A request for a reader. Readers in other languages get it as a line of JSON. */
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
  /** For each request, the texts that the program would exchange as a refresh token. */
  read(requests: readonly WireRequest[]): Promise<readonly (readonly string[])[]>;
  close(): Promise<void>;
}
