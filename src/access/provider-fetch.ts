import { once } from 'node:events';
import type { Agent, AgentOptions, IncomingMessage, RequestOptions } from 'node:http';
import https from 'node:https';
import { decodeNow } from '../http/content-coding.ts';
import type { FieldList } from '../http/field-list.ts';
import * as http from '../http/node-http.ts';
import { connectBounded } from '../lib/bound-handshake.ts';
import type { ComponentLog } from '../lib/component.ts';
import { parseJson } from '../lib/json.ts';

/** Why an identity provider's answer is not usable: stable words for log and `/readyz`, and what to look at first. */
const faultTexts = {
  unreachable: 'unreachable: no connection to the source, or it broke',
  timeout: 'timeout: the source does not answer',
  status: 'status: the source answers with a status other than 200',
  credentials: 'credentials: the source refuses clientId and clientSecret (401, 403)',
  redirect: 'redirect: the source answers with a redirect, which shopward never follows',
  'too-large': 'too-large: the answer is longer than shopward reads',
  malformed: 'malformed: the answer is not what was asked for',
  empty: 'empty: no key of the set fits a configured algorithm',
  ambiguous: 'ambiguous: two different keys have the same kid',
  'other-issuer': 'other-issuer: the metadata are those of another issuer than the configured one',
  'key-set-url': 'key-set-url: the metadata name no jwks_uri with https:// or at the origin of the issuer',
  unusable: 'unusable: the log (keys-refused) names the file',
};

type FaultWord = Exclude<keyof typeof faultTexts, 'unusable'>;
/** A word of the table, perhaps with the status or the system's code: `unreachable ECONNREFUSED`. */
export type ProviderError = FaultWord | `${FaultWord} ${string}`;

export function faultText(error: string): string {
  const [word = '', detail] = error.split(' ');
  const text = (faultTexts as Readonly<Record<string, string>>)[word];
  if (text === undefined) return error;
  return detail === undefined ? text : `${text} (${detail})`;
}

/** Logs when a provider starts to fail, when the reason changes, and when it answers again. */
export function createOutageLog(
  log: ComponentLog,
  failed: readonly [event: string, text: string],
  back: readonly [event: string, text: string],
): (error: string | undefined) => void {
  let reported: string | undefined;
  return (error) => {
    const word = error?.split(' ', 1)[0];
    if (word === reported) return;
    reported = word;
    if (error === undefined) log.info({ event: back[0] }, back[1]);
    else log.error({ event: failed[0], reason: word }, `${failed[1]}: ${faultText(error)}`);
  };
}

export type Fetched = { readonly value: unknown } | { readonly error: ProviderError };

interface Bounds {
  /** Bytes of the document, after content decoding. */
  readonly maxBytes: number;
  /** Ends the exchange with the error `timeout`. */
  readonly deadline: AbortSignal;
  /** Called with the fields of the response and the time of the request, in milliseconds. */
  readonly onDate?: ((fields: FieldList, askedMs: number) => void) | undefined;
}

export interface FetchOptions extends Bounds {
  readonly accept: string;
  /** Ends the exchange: its caller has given up. */
  readonly signal: AbortSignal;
}

/** Gets a JSON document over a connection of its own; never rejects. */
export async function fetchJson(url: string, { accept, signal, ...bounds }: FetchOptions): Promise<Fetched> {
  const fetched = await exchange(url, { agent: createAgent(url), headers: { accept }, signal }, bounds);
  // A key set is fetched without credentials, so 401 and 403 are ordinary statuses here.
  return 'error' in fetched && fetched.error === 'credentials' ? { error: 'status 401/403' } : fetched;
}

interface FormRequest extends Bounds {
  readonly url: string;
  readonly authorization: string;
  readonly form: string;
}

/**
 * Sends a form and gets a JSON document, over a connection of the agent; never rejects. Only for a form that
 * may be sent twice: if the connection fails, perhaps since it was kept too long, the form is sent once more on a new one.
 */
export async function postForm(
  agent: Agent,
  { url, authorization, form, ...bounds }: FormRequest,
): Promise<Fetched> {
  const headers = {
    authorization,
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': Buffer.byteLength(form),
  };
  const post = (over: Agent) => exchange(url, { agent: over, method: 'POST', headers }, bounds, form);
  const first = await post(agent);
  const isBroken = 'error' in first && first.error.startsWith('unreachable');
  return isBroken ? post(createAgent(url)) : first;
}

/** Without options, each request has a connection of its own. */
export function createAgent(url: string, options?: AgentOptions): Agent {
  if (!url.startsWith('https:')) return new http.Agent(options);
  return Object.assign(new https.Agent(options), { createConnection: connectBounded });
}

async function exchange(
  url: string,
  options: RequestOptions,
  { maxBytes, deadline, onDate }: Bounds,
  body = '',
): Promise<Fetched> {
  const signal = options.signal ? AbortSignal.any([deadline, options.signal]) : deadline;
  try {
    const askedMs = Date.now();
    const { request: open } = url.startsWith('https:') ? https : http;
    const request = open(url, { ...options, signal });
    request.on('error', () => {}).end(body);
    // The signal is passed here, too: after a 101 there is neither a response nor an error.
    const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
    const { statusCode = 0 } = response;
    onDate?.(response.rawHeaders, askedMs);
    if (statusCode !== 200) {
      response.on('error', () => {}).destroy();
      return { error: statusError(statusCode) };
    }
    const bytes = await readBytes(response, maxBytes);
    return bytes === undefined ? { error: 'too-large' } : read(bytes, response.rawHeaders, maxBytes);
  } catch (fault) {
    if (deadline.aborted) return { error: 'timeout' };
    return { error: `unreachable ${(fault as NodeJS.ErrnoException).code ?? 'broken'}` };
  }
}

/** Undefined if there are more than `maxBytes` bytes; the rest is not read. */
async function readBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function statusError(status: number): ProviderError {
  if (status === 401 || status === 403) return 'credentials';
  return status >= 300 && status < 400 ? 'redirect' : `status ${status}`;
}

/**
 * Decodes and parses a document. Some static file servers ignore Accept-Encoding and send the coding in which the file is
 * stored. Some name a coding that does not exist (`utf-8`, `aws-chunked`): that document is parsed without decoding.
 */
function read(bytes: Buffer, fields: FieldList, maxBytes: number): Fetched {
  const octets = decodeNow(bytes, fields, maxBytes);
  if (octets === 'too-long') return { error: 'too-large' };
  const value =
    octets === 'broken' ? undefined : parseJson((octets === 'unknown' ? bytes : octets).toString('utf8'));
  return value === undefined ? { error: 'malformed' } : { value };
}
