import { openRawConnection, type RawResponse } from './raw-client.ts';

export interface ShopCall {
  readonly token?: string | undefined;
  /** Octets as latin-1; a list is one field line each. */
  readonly ifMatch?: string | readonly string[] | undefined;
  readonly ifNoneMatch?: string | undefined;
  /** Sent as JSON:API; a string is sent unchanged. */
  readonly body?: object | string | undefined;
  /** Further field lines. `Content-Type: text/plain`, for example, replaces the default type. */
  readonly fields?: readonly string[];
}

/** Sends one request of an API client on a new raw connection and reads the final response. */
export async function callShop(
  port: number,
  line: string,
  { token, ifMatch = [], ifNoneMatch, body, fields = [] }: ShopCall = {},
): Promise<RawResponse> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const hasType = fields.some((field) => /^content-type:/i.test(field));
  const lines = [
    `${line} HTTP/1.1`,
    'Host: shop.example',
    'Accept: application/vnd.api+json',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...[ifMatch].flat().map((value) => `If-Match: ${value}`),
    ...(ifNoneMatch === undefined ? [] : [`If-None-Match: ${ifNoneMatch}`]),
    ...fields,
    ...(text === undefined ? [] : [`Content-Length: ${Buffer.byteLength(text)}`]),
    ...(text === undefined || hasType ? [] : ['Content-Type: application/vnd.api+json']),
    'Connection: close',
  ];
  const connection = await openRawConnection(port);
  try {
    await connection.write(`${lines.join('\r\n')}\r\n\r\n`);
    if (text !== undefined) await connection.write(Buffer.from(text));
    return await connection.readResponse(line.slice(0, line.indexOf(' ')));
  } finally {
    connection.close();
  }
}

/** The parsed body. */
// biome-ignore lint/suspicious/noExplicitAny: tests read any field of the body
export function jsonOf(response: RawResponse): any {
  return JSON.parse(response.body.toString());
}

/** The status; for a refusal, also its code. */
export function outcomeOf(response: RawResponse): string {
  if (response.status < 400) return String(response.status);
  const [error] = jsonOf(response).errors;
  return `${response.status} ${error.code}`;
}
