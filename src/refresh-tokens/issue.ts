import { randomBytes } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { decodeNow } from '../http/content-coding.ts';
import { type FieldList, fieldValues, trimOws } from '../http/field-list.ts';
import { reject } from '../http/rejection.ts';
import { isContainer, parseJson } from '../lib/json.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext } from './context.ts';
import type { TokenEndpoint, TokenFields } from './endpoints.ts';
import { foldName } from './token-request.ts';
import type { FamilyId, GenerationAt, SubjectDigest } from './token-values.ts';

/**
 * What the shop did. `done`: what was asked; `refused`: certainly nothing; `failed`: its complete response is 3xx, 408 or
 * 5xx, and what it did is not known; `unknown`: there is no complete response.
 */
type ShopVerdict = 'refused' | 'failed' | 'done' | 'unknown';

export function verdictOf(outcome: ForwardOutcome): ShopVerdict {
  if (outcome.kind === 'unsent') return 'refused';
  if (outcome.kind === 'unknown' || outcome.status < 200) return 'unknown';
  const { status } = outcome;
  if (status < 300) return 'done';
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'failed';
}

/** Hooks that record the tokens of a response, and withhold a response that may have tokens which cannot be read. */
export function issueHooks(
  context: RefreshTokenContext,
  endpoints: readonly TokenEndpoint[],
  request: Pick<CanonicalRequest, 'fields'>,
  isObserved: boolean,
): UpstreamHooks {
  return {
    ...readsAnswer(context, request, isObserved),
    async onOutcome(outcome) {
      if (verdictOf(outcome) !== 'done') return {};
      const answer = readAnswer(context, outcome, endpoints);
      if (answer === 'unreadable') return isObserved ? {} : withheld;
      const family = newFamily();
      for (const issued of answer.tokens) {
        await recordIssued(context, issued, { subject: subjectDigestOf(context, issued), family });
      }
      return {};
    },
  };
}

/**
 * The parts of the hooks that make a response readable: without a content coding, whole, of a type that is parsed here, and
 * buffered until it is read. Otherwise a client could get a token that is not recorded.
 */
export function readsAnswer(
  { answerBytes, answerWithinMs }: RefreshTokenContext,
  { fields }: Pick<CanonicalRequest, 'fields'>,
  isObserved: boolean,
): Pick<UpstreamHooks, 'bufferLimit' | 'answerWithinMs' | 'withholds' | 'requestFields'> {
  return {
    bufferLimit: answerBytes,
    answerWithinMs,
    requestFields: {
      Accept: acceptedAnswers(fields),
      'Accept-Encoding': 'identity',
      ...{ 'Accept-Charset': null, Range: null, 'If-Range': null },
      // A condition could hide a success behind 304 or 412.
      ...{ 'If-Match': null, 'If-None-Match': null },
      ...{ 'If-Modified-Since': null, 'If-Unmodified-Since': null },
    },
    ...(!isObserved && { withholds: (status: number) => status >= 200 && status < 300 }),
  };
}

/** The client's Accept (RFC 9110 section 12.5.1) without ranges that exclude JSON; `null`: it sent none. */
function acceptedAnswers(fields: FieldList): string | null {
  const ranges = fieldValues(fields, 'accept').flatMap((value) => value.split(','));
  if (ranges.length === 0) return null;
  const readable = ranges.map(trimOws).filter((range) => jsonRange.test(range));
  return readable.length > 0 ? readable.join(', ') : 'application/json, application/vnd.api+json';
}

const jsonRange = /^(?:\*\/\*|application\/\*|application\/(?:[\w.-]+\+)?json)[ \t]*(?:;[^"]*)?$/i;

/** The tokens of a 2xx response. */
export function readAnswer(
  { answerBytes, emit }: RefreshTokenContext,
  outcome: ForwardOutcome,
  endpoints: readonly TokenEndpoint[],
): IssuedAnswer {
  if (outcome.kind !== 'answered') return nothingIssued;
  const { body, fields } = outcome;
  const names = endpoints.map((endpoint) => endpoint.fields);
  const answer = body === null ? 'unreadable' : readIssuedTokens(body, fields, names, answerBytes);
  if (answer === 'unreadable') emit('answer-unreadable');
  else if (answer.tokens.length === 0) emit('not-recorded-none');
  return answer;
}

/** The client must not get tokens that shopward does not know. */
export const withheld: ResponseEdits = { rejection: reject('token-answer-unreadable') };

export function subjectDigestOf(
  { subjectOf, digests }: RefreshTokenContext,
  { accessToken }: IssuedTokens,
): SubjectDigest | null {
  const subject = accessToken === undefined ? undefined : subjectOf(accessToken);
  return subject === undefined ? null : digests.ofSubject(subject);
}

/** A refresh token of a response, with what belongs to it. */
export interface IssuedTokens {
  readonly refreshToken: string;
  readonly accessToken: string | undefined;
  /** Lifetime of the refresh token, if the response names one. */
  readonly lifetimeMs: number | undefined;
}

const longestLifetimeSeconds = 36_500 * 86_400;

export interface ReadTokens {
  /** Its refresh tokens, each with the lifetime and access token of the same object, else with the first access token. */
  readonly tokens: readonly IssuedTokens[];
  /** The first access token anywhere in it. */
  readonly accessToken: string | undefined;
}

/** `unreadable`: there may be tokens that cannot be read. */
type IssuedAnswer = ReadTokens | 'unreadable';

const nothingIssued: ReadTokens = { tokens: [], accessToken: undefined };

/** Maximum number of refresh tokens in one response; shops issue one. */
const maxTokens = 8;

/**
 * Reads the tokens of a 2xx response: in JSON at any depth and under any spelling of their names, since some shops let the
 * client choose the shape. Any other response counts as unreadable unless it is a text of short words.
 */
export function readIssuedTokens(
  body: Buffer,
  fields: FieldList,
  names: readonly TokenFields[],
  maxBytes: number,
): IssuedAnswer {
  const octets = decodeNow(body, fields, maxBytes);
  if (!Buffer.isBuffer(octets)) return 'unreadable';
  const document = parseJson(octets.toString('utf8').replace(/^\ufeff/, ''));
  if (!isContainer(document))
    return containsNoToken(octets.toString('latin1'), names) ? nothingIssued : 'unreadable';
  const issued = tokensOf(document, names);
  return issued.tokens.length > maxTokens ? 'unreadable' : issued;
}

/** Visits every object, without recursion: a response may be nested as deep as it is long. */
function tokensOf(document: object, names: readonly TokenFields[]): ReadTokens {
  const folded = (of: (fields: TokenFields) => string) => new Set(names.map((name) => foldName(of(name))));
  const refresh = folded(({ refreshToken }) => refreshToken);
  const access = folded(({ accessToken }) => accessToken);
  const lifetime = folded(({ refreshExpiresIn }) => refreshExpiresIn);
  const found: IssuedTokens[] = [];
  let first: string | undefined;
  const waiting: object[] = [document];
  /** Objects and lists below the field of the refresh token: any text in them may be the token, unless a field has its name. */
  const below = new Set<object>();
  for (let next = waiting.pop(); next !== undefined && found.length <= maxTokens; next = waiting.pop()) {
    const [named, others, start, size] = [[] as string[], [] as string[], waiting.length, below.size];
    let accessToken: string | undefined;
    let lifetimeMs: number | undefined;
    // A list may be long, and its names are indexes.
    for (const [name, value] of Array.isArray(next) ? next.entries() : Object.entries(next)) {
      const folded = typeof name === 'number' ? '' : foldName(name);
      const isNamed = refresh.has(folded);
      const isText = typeof value === 'string' && value !== '';
      if (isContainer(value)) {
        waiting.push(value);
        if (isNamed) below.add(value);
      } else if (isNamed && (isText || typeof value === 'number')) named.push(String(value));
      else if (access.has(folded)) accessToken ??= isText ? value : undefined;
      else if (lifetime.has(folded)) lifetimeMs ??= lifetimeOf(value);
      else if (isText) others.push(value);
    }
    const isToken = below.has(next) && named.length === 0 && below.size === size;
    for (let i = start; isToken && i < waiting.length; i += 1) below.add(waiting[i] as object);
    const texts = isToken ? tokensAmong(others, accessToken, Array.isArray(next)) : named;
    if (texts.includes(accessToken ?? '')) accessToken = undefined;
    first ??= accessToken;
    for (const refreshToken of texts.slice(0, maxTokens + 1))
      found.push({ refreshToken, accessToken, lifetimeMs });
  }
  const tokens = found.map((one) => ({ ...one, accessToken: one.accessToken ?? first }));
  return { tokens, accessToken: first };
}

/** The texts of an object that are long enough for a secret, such as no date; of access tokens, if it has no other; else all. */
function tokensAmong(texts: string[], accessToken: string | undefined, isList: boolean): readonly string[] {
  const isSecret = (text: string) => isList || secret.test(text);
  const all = accessToken === undefined ? texts : [...texts, accessToken];
  return [texts.filter(isSecret), all.filter(isSecret)].find(({ length }) => length > 0) ?? all;
}

const secret = /[^\s<>"'&;:]{16}/;

/** Whether a text, such as `OK`, is printable and has neither the field's name nor a word as long as a secret. */
function containsNoToken(text: string, names: readonly TokenFields[]): boolean {
  if (/[^\t\r\n\x20-\x7e]/.test(text) || secret.test(text)) return false;
  const folded = foldName(text);
  return !names.some(({ refreshToken }) => folded.includes(foldName(refreshToken)));
}

/** Undefined, so that the default applies, for anything that is no lifetime, and for 0: some shops mean "without end". */
function lifetimeOf(seconds: unknown): number | undefined {
  const number = typeof seconds === 'string' ? Number(seconds) : seconds;
  if (typeof number !== 'number' || !(number > 0)) return undefined;
  return Math.min(number, longestLifetimeSeconds) * 1000;
}

/** Where a new token comes from. */
interface Descent {
  readonly subject: SubjectDigest | null;
  readonly family: FamilyId;
  /** The subject's generation when the token's parent was claimed; undefined: the subject's generation now. */
  readonly since?: number | undefined;
}

/** Milliseconds by which the clocks of two primaries of one store may differ. */
const clockSlackMs = 1000;

export function newFamily(): FamilyId {
  return randomBytes(12).toString('base64url') as FamilyId;
}

/** Records a token that the shop has issued. If the store is away, retries until the token is recorded. */
export async function recordIssued(
  { store, digests, retries, lifetimeMs: usualMs, monotonicNow, emit }: RefreshTokenContext,
  issued: IssuedTokens,
  { subject, family, since }: Descent,
): Promise<void> {
  const token = digests.ofToken(issued.refreshToken);
  const lifetimeMs = issued.lifetimeMs ?? usualMs;
  const issuedAtMs = monotonicNow();
  const isRecorded = await retries.write(async (isLate) => {
    const restMs = Math.max(1, Math.floor(lifetimeMs - (isLate ? monotonicNow() - issuedAtMs : 0)));
    const current = subject === null ? undefined : await store.generationFor(subject, restMs);
    // Measured after the reply, so that the time of issue is too early rather than too late.
    const agoMs = monotonicNow() - issuedAtMs;
    const own = current === undefined ? 0 : isLate ? generationAgo(current, agoMs) : current.generation;
    await store.record(token, { subject, generation: since ?? own, family, lifetimeMs: restMs });
    if (isLate) emit('recorded');
  });
  emit(isRecorded ? 'recorded' : 'record-delayed');
}

/**
 * The generation of a token that was issued `agoMs` milliseconds ago: lower than that of every later `mine`, which ends it,
 * and higher than that of every earlier one.
 */
function generationAgo({ generation, nowMicros }: GenerationAt, agoMs: number): number {
  return Math.max(0, Math.min(generation, Math.floor(nowMicros - (agoMs + clockSlackMs) * 1000)));
}
