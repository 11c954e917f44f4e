import assert from 'node:assert/strict';
import type { CanonicalRequest, Method } from '../../../../src/http/canonical-request.ts';
import { isFormType } from '../../../../src/http/form-encoding.ts';
import { isAnswer, isRejection } from '../../../../src/http/rejection.ts';
import { createRefreshTokens, createTokenMatcher } from '../../../../src/refresh-tokens/filter.ts';
import { MemoryTokenStore } from '../../../../src/refresh-tokens/memory-store.ts';
import { runFilter } from '../../../harness/run-filter.ts';
import { lifetimeMs, shopEndpoints } from '../../../unit/refresh-tokens/token-filter.ts';
import { isSameToken } from './same-token.ts';
import type { TokenRequestCase } from './token-requests.ts';
import type { TokenReader } from './wire-request.ts';

/** Stateless, so all filters share it. */
const matchToken = createTokenMatcher(shopEndpoints, { ignoredPrefixes: [] });

/** The filter of a new process. */
function openFilter() {
  const store = new MemoryTokenStore({ lifetimeMs, retentionMs: 'keep' });
  return createRefreshTokens(matchToken, {
    store,
    subjectOf: () => undefined,
    lifetimeMs,
    answerWithinMs: 60_000,
    replay: 'refuse',
  });
}

/** Runs the filter as the pipeline does. Resolves to `refused`, or to the hooks of the forwarded request. */
async function pass(filter: ReturnType<typeof openFilter>, request: CanonicalRequest, body: Buffer) {
  const hooks = await runFilter(filter, request, undefined, body);
  if (isRejection(hooks) || isAnswer(hooks)) return 'refused';
  return hooks;
}

const json = ['Content-Type', 'application/json'];

/** The shop's answer to a refresh, with a new token. */
const refreshed = {
  kind: 'answered',
  status: 200,
  fields: json,
  body: Buffer.from(JSON.stringify({ data: { attributes: { refreshToken: 'the-next-one' } } })),
} as const;

/** Refreshes a token by a plain request, which uses it up. */
async function exchangePlainly(
  filter: ReturnType<typeof openFilter>,
  token: string,
): Promise<'exchanged' | 'refused'> {
  const body = Buffer.from(JSON.stringify({ data: { attributes: { refreshToken: token } } }));
  const hooks = await pass(filter, requestOf('POST', '/refresh-tokens', '', json, body.length), body);
  assert(hooks !== undefined);
  if (hooks === 'refused') return hooks;
  await hooks.onOutcome(refreshed);
  return 'exchanged';
}

function requestOf(
  method: string,
  path: string,
  query: string,
  fields: readonly string[],
  length: number,
): CanonicalRequest {
  const isRead = method === 'GET' || method === 'HEAD';
  return {
    method: method as Method,
    path,
    segments: path.slice(1).split('/'),
    query: query === '' ? '' : `?${query}`,
    fields,
    body: isRead || length === 0 ? 'none' : { length },
    isFormPost: method === 'POST' && isFormType(fields[fields.indexOf('Content-Type') + 1]),
  } as unknown as CanonicalRequest;
}

/** The request as shopward forwards it; undefined: refused. */
async function forwardedBy(filter: ReturnType<typeof openFilter>, { path, request }: TokenRequestCase) {
  const { method, query, contentType, contentEncoding } = request;
  const body = Buffer.from(request.body, 'base64');
  const fields = [
    ...(contentType === '' ? [] : ['Content-Type', contentType]),
    ...(contentEncoding === '' ? [] : ['Content-Encoding', contentEncoding]),
  ];
  const canonical = requestOf(method, path, query, fields, body.length);
  const hooks = await pass(filter, canonical, canonical.body === 'none' ? Buffer.alloc(0) : body);
  if (hooks === 'refused') return undefined;
  const sent = canonical.body === 'none' ? { ...request, body: '' } : request;
  return { sent, onOutcome: hooks?.onOutcome.bind(hooks) };
}

export interface Findings {
  /** Requests that were forwarded. */
  forwarded: number;
  /** Pairs of a forwarded request and a reader that saw a token in it. */
  read: number;
}

/** Cases in one batch; each needs its own filter. */
const batch = 2000;

/**
 * Passes the cases through the filter, and the forwarded requests to the readers. Throws if a reader sees a used token in
 * a forwarded request, or if a token that a forwarded request has used up can be refreshed again.
 */
export async function compareReadings(
  cases: readonly TokenRequestCase[],
  tokens: readonly string[],
  readers: Readonly<Record<string, TokenReader>>,
): Promise<Findings> {
  const findings = { forwarded: 0, read: 0 };
  for (let i = 0; i < cases.length; i += batch) {
    const { forwarded, read } = await compareBatch(cases.slice(i, i + batch), tokens, readers);
    findings.forwarded += forwarded;
    findings.read += read;
  }
  return findings;
}

async function compareBatch(
  cases: readonly TokenRequestCase[],
  tokens: readonly string[],
  readers: Readonly<Record<string, TokenReader>>,
): Promise<Findings> {
  const used = openFilter();
  for (const token of tokens) assert.equal(await exchangePlainly(used, token), 'exchanged');
  const fresh = cases.map((one) => ({ one, filter: openFilter() }));
  const asUsed = await Promise.all(cases.map((one) => forwardedBy(used, one)));
  for (const each of asUsed) await each?.onOutcome?.({ kind: 'unsent', fault: 'connect' } as never);
  const asFresh = await Promise.all(fresh.map(({ one, filter }) => forwardedBy(filter, one)));
  const findings = { forwarded: 0, read: 0 };
  const sent = asFresh.flatMap((each, i) => (each === undefined ? [] : [{ each, i }]));
  findings.forwarded = sent.length;
  for (const { each } of sent) await each.onOutcome?.(refreshed);
  for (const [name, reader] of Object.entries(readers)) {
    const answers = await reader.read(sent.map(({ each }) => each.sent));
    for (const [at, texts] of answers.entries()) {
      const i = sent[at]?.i ?? 0;
      const read = tokens.filter((token) => texts.some((text) => isSameToken(text, token)));
      if (read.length > 0) findings.read += 1;
      const about = () =>
        `${name} reads ${JSON.stringify(texts)} in ${describeCase(cases[i] as TokenRequestCase)}`;
      assert(read.length === 0 || asUsed[i] === undefined, `a used token is refreshed: ${about()}`);
      for (const token of read) {
        const again = await exchangePlainly(fresh[i]?.filter as ReturnType<typeof openFilter>, token);
        assert.equal(again, 'refused', `exchanged twice: ${about()}`);
      }
    }
  }
  return findings;
}

function describeCase({ path, request }: TokenRequestCase): string {
  const body = Buffer.from(request.body, 'base64').toString('latin1');
  return JSON.stringify({ path, ...request, body });
}
