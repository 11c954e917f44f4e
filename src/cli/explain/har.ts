import { isObject, type JsonObject } from '../../lib/json.ts';
import type { PastedParts } from './pasted-command.ts';

/** Reads a HAR file (HAR 1.2), an entry, or its request. Of a file: the first refused entry, else the first. */
export function readHar(document: JsonObject): PastedParts | undefined {
  const { log } = document;
  const entries =
    isObject(log) && Array.isArray(log.entries)
      ? log.entries.filter(isObject)
      : [Array.isArray(document.headers) ? { request: document } : document];
  const isRefused = ({ response }: JsonObject) =>
    isObject(response) && typeof response.status === 'number' && response.status >= 400;
  const index = Math.max(0, entries.findIndex(isRefused));
  const { request } = entries[index] ?? {};
  if (!isObject(request) || typeof request.url !== 'string' || !Array.isArray(request.headers))
    return undefined;
  const pairs = request.headers
    .filter(isObject)
    .map(({ name, value }) => [String(name), String(value)] as const);
  const { postData } = request;
  const which = isRefused(entries[index] ?? {}) ? 'the first one that was refused' : 'the first one';
  return {
    method: typeof request.method === 'string' ? request.method : 'GET',
    url: request.url,
    // In HTTP/2, names with a colon are the request line. Content-Length is computed again.
    fields: pairs.flatMap(([name, value]) =>
      name.startsWith(':') || /^(?:host|content-length|connection)$/i.test(name) ? [] : [name, value],
    ),
    body: isObject(postData) && typeof postData.text === 'string' ? postData.text : undefined,
    notes: [
      entries.length > 1
        ? `entry ${index + 1} of ${entries.length} of a HAR file: ${which}`
        : 'read from a HAR entry',
    ],
  };
}
