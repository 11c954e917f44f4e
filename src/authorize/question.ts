import type { CanonicalRequest } from '../http/canonical-request.ts';
import { canonicaliseRequest, type RequestHead, type RequestRules } from '../http/canonicalise-request.ts';
import { type FieldKinds, kindOf } from '../http/field-kinds.ts';
import { fieldValues, readNominations } from '../http/field-list.ts';
import type { Peer } from '../http/peer.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';

/** The path at which a front asks. Below it, method and rest of the target are those of the request in question. */
const questionPath = '/authorize';

/** Fields in which a front names the request in question. */
const sources = [
  { method: 'x-forwarded-method', target: 'x-forwarded-uri', host: 'x-forwarded-host' },
  { method: 'x-original-method', target: 'x-original-uri', host: 'host' },
] as const;

/** Fields that fronts add to a question. shopward would not forward these, and a front sets new ones for the shop. */
const frontFields: ReadonlySet<string> = new Set([
  ...['keep-alive', 'proxy-connection', 'te', 'x-real-ip'],
  ...['x-forwarded-host', 'x-forwarded-port', 'x-forwarded-server'],
]);

/**
 * Converts a front's question to the request in question, in the canonical form in which shopward itself would forward it.
 * The front forwards the original request, so a request that shopward would have to change is refused: see
 * docs/decisions/authorize.md. Pure; never throws.
 */
export function readQuestion(
  question: RequestHead,
  peer: Peer,
  rules: RequestRules,
): CanonicalRequest | Rejection {
  if (!peer.isTrusted) return reject('peer-not-trusted');
  const original = readOriginal(question, rules.fieldKinds);
  if (isRejection(original)) return original;
  const request = canonicaliseRequest(original, peer, rules);
  if (isRejection(request)) return request;
  if (request.refusedTarget !== undefined) return request.refusedTarget;
  return request.path + request.query === original.url ? request : notCanonical;
}

const unclear = reject('bad-request', { reason: 'original-request' });
const notCanonical = reject('bad-request-target', { reason: 'not-canonical' });

function readOriginal(question: RequestHead, kinds: FieldKinds): RequestHead | Rejection {
  const { method, target, host, source } = findOriginal(question);
  const scheme = onlyValue(question, 'x-forwarded-proto');
  if (method === undefined || target === undefined || host === undefined) return unclear;
  if (scheme !== 'http' && scheme !== 'https') return unclear;
  const fields = readOriginalFields(question, kinds, source);
  if (isRejection(fields)) return fields;
  // The question has no body; the request may have one.
  const framing = method === 'GET' || method === 'HEAD' ? [] : ['Transfer-Encoding', 'chunked'];
  const rawHeaders = ['Host', host, ...fields, ...framing];
  return { method, url: target, rawHeaders, httpVersionMajor: 1, httpVersionMinor: 1 };
}

interface Original {
  readonly method?: string | undefined;
  readonly target?: string | undefined;
  readonly host?: string | undefined;
  readonly source: readonly string[];
}

/** Undefined parts: there is no original request, there are two, or a part is missing or repeated. */
function findOriginal(question: RequestHead): Original {
  const { method, url = '', rawHeaders } = question;
  if (url.startsWith(`${questionPath}/`))
    return { method, target: url.slice(questionPath.length), host: onlyValue(question, 'host'), source: [] };
  const given = sources.filter((one) =>
    [one.method, one.target].some((name) => fieldValues(rawHeaders, name).length > 0),
  );
  const [only] = given;
  // Caddy includes the query of the request.
  const [path] = url.split('?', 1);
  if (path !== questionPath || method !== 'GET' || only === undefined || given.length > 1)
    return { source: [] };
  return {
    method: onlyValue(question, only.method),
    target: onlyValue(question, only.target),
    host: onlyValue(question, only.host),
    source: [only.method, only.target],
  };
}

/** Envoy, which asks below this path, removes `X-Envoy-*` of clients and adds its own. */
function isOfFront(name: string, source: readonly string[]): boolean {
  return frontFields.has(name) || (source.length === 0 && name.startsWith('x-envoy-'));
}

function onlyValue({ rawHeaders }: RequestHead, name: string): string | undefined {
  const values = fieldValues(rawHeaders, name);
  return values.length === 1 ? values[0] : undefined;
}

/** The fields of the original request; or a refusal, because the public port would drop a field or act on it. */
function readOriginalFields(
  { rawHeaders }: RequestHead,
  kinds: FieldKinds,
  source: readonly string[],
): string[] | Rejection {
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [sent, value] = [rawHeaders[i] as string, rawHeaders[i + 1] as string];
    const name = sent.toLowerCase();
    switch (source.includes(name) ? 'host' : kindOf(kinds, sent)) {
      case 'host':
        break;
      case 'dropped':
        if (!isOfFront(name, source)) return reject('bad-request-fields', { reason: 'not-forwarded' });
        break;
      case 'method-override':
        return reject('method-override');
      case 'upgrade':
        return reject('bad-request', { reason: 'websocket' });
      case 'connection':
        if (readNominations(value).length > 0)
          return reject('bad-request-fields', { reason: 'nominated-field' });
        break;
      case 'content-length':
        if (value !== '0') return reject('unexpected-body');
        break;
      case 'transfer-encoding':
        return reject('unexpected-body');
      default:
        kept.push(sent, value);
    }
  }
  return kept;
}
