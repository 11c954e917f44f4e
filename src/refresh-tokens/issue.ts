import { randomBytes } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { decodeContent } from '../http/content-coding.ts';
import { type FieldList, fieldValues, trimOws } from '../http/field-list.ts';
import { reject } from '../http/rejection.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext } from './context.ts';
import type { TokenEndpoint, TokenFields } from './endpoints.ts';
import { foldName } from './token-request.ts';
import type { FamilyId, Standing, SubjectDigest } from './token-store.ts';

/**
 * What the shop did, as far as anybody knows. `refused`: certainly nothing; `failed`: a complete answer, and it was not
 * what was asked (5xx, 3xx, 408), whatever happened inside the shop; `done`: what was asked; `unknown`: no answer came to its end.
 */
type ShopVerdict = 'refused' | 'failed' | 'done' | 'unknown';

export function verdictOf(outcome: ForwardOutcome): ShopVerdict {
  if (outcome.kind === 'unsent') return 'refused';
  if (outcome.kind === 'unknown') return 'unknown';
  const { status } = outcome;
  if (status < 200) return 'unknown';
  if (status < 300) return 'done';
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'failed';
}

/** Answers in which the shop may issue tokens are read; one that may hold some that cannot be read is withheld. */
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
      if (answer === 'unreadable') return isObserved ? {} : withholdUnreadable();
      const family = newFamily();
      for (const issued of answer) {
        await recordIssued(context, issued, { subject: subjectDigestOf(context, issued), family });
      }
      return {};
    },
  };
}

/**
 * What makes an answer readable, whoever asks: otherwise the client could see to it that its new token is known to nobody.
 * Uncoded, whole, of a type that is read here, and held back as long as it lasts.
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
      'Accept-Charset': null,
      Range: null,
    },
    ...(!isObserved && { withholds: (status: number) => status >= 200 && status < 300 }),
  };
}

/** What the client accepts (RFC 9110 section 12.5.1), but for what is surely no JSON; `null`: it did not say. */
function acceptedAnswers(fields: FieldList): string | null {
  const ranges = fieldValues(fields, 'accept').flatMap((value) => value.split(','));
  if (ranges.length === 0) return null;
  const readable = ranges.map(trimOws).filter((range) => jsonRange.test(range));
  return readable.length > 0 ? readable.join(', ') : 'application/json, application/vnd.api+json';
}

const jsonRange = /^(?:\*\/\*|application\/\*|application\/(?:[\w.-]+\+)?json)[ \t]*(?:;[^"]*)?$/i;

/** The tokens of a 2xx. */
export function readAnswer(
  { answerBytes, emit }: RefreshTokenContext,
  outcome: ForwardOutcome,
  endpoints: readonly TokenEndpoint[],
): IssuedAnswer {
  if (outcome.kind !== 'answered') return [];
  const names = endpoints.map(({ fields }) => fields);
  const answer =
    outcome.body === null
      ? 'unreadable'
      : readIssuedTokens(outcome.body, outcome.fields, names, answerBytes * 4);
  if (answer === 'unreadable') emit('answer-unreadable');
  else if (answer.length === 0) emit('not-recorded-none');
  return answer;
}

/** Nobody gets tokens that nobody knows. */
export function withholdUnreadable(): ResponseEdits {
  return { rejection: reject('token-answer-unreadable') };
}

export function subjectDigestOf(
  { subjectOf, digests }: RefreshTokenContext,
  { accessToken }: IssuedTokens,
): SubjectDigest | null {
  const subject = accessToken === undefined ? undefined : subjectOf(accessToken);
  return subject === undefined ? null : digests.ofSubject(subject);
}

/** What the shop's answer gives. */
interface IssuedTokens {
  readonly refreshToken: string;
  readonly accessToken: string | undefined;
  /** Lifetime of the refresh token, if the answer names one. */
  readonly lifetimeMs: number | undefined;
}

const longestLifetimeSeconds = 36_500 * 86_400;

/** Every refresh token of an answer; `unreadable`: there may be some that cannot be read. */
type IssuedAnswer = readonly IssuedTokens[] | 'unreadable';

/** Refresh tokens that one answer may hold; shops give one. */
const most = 8;

/**
 * Reads the tokens out of a 2xx answer: JSON, in which they stand anywhere after their names, however those are spelled,
 * since some shops let the client choose the shape. Any other answer may hold a token unless it is empty, or a short text.
 * Exported for its tests.
 */
export function readIssuedTokens(
  body: Buffer,
  fields: FieldList,
  names: readonly TokenFields[],
  maxBytes: number,
): IssuedAnswer {
  const octets = decodeContent(body, fields, maxBytes);
  if (!Buffer.isBuffer(octets)) return 'unreadable';
  const document = parseJson(octets);
  if (typeof document !== 'object' || document === null) {
    return holdsNoToken(octets.toString('latin1'), names) ? [] : 'unreadable';
  }
  const issued = tokensOf(document, names);
  return issued.length > most ? 'unreadable' : issued;
}

/** Every object in turn, without recursion: an answer may be nested as deep as it is long. */
function tokensOf(document: object, names: readonly TokenFields[]): readonly IssuedTokens[] {
  const folded = (of: (fields: TokenFields) => string) => new Set(names.map((name) => foldName(of(name))));
  const refresh = folded(({ refreshToken }) => refreshToken);
  const access = folded(({ accessToken }) => accessToken);
  const lifetime = folded(({ refreshExpiresIn }) => refreshExpiresIn);
  const found: IssuedTokens[] = [];
  const waiting: object[] = [document];
  for (let next = waiting.pop(); next !== undefined && found.length <= most; next = waiting.pop()) {
    const texts: string[] = [];
    let accessToken: string | undefined;
    let lifetimeMs: number | undefined;
    for (const [name, value] of Object.entries(next)) {
      if (typeof value === 'object' && value !== null) waiting.push(value);
      const folded = foldName(name);
      if (refresh.has(folded)) for (const text of textsOf(value)) texts.push(text);
      else if (access.has(folded)) accessToken ??= typeof value === 'string' ? value : undefined;
      else if (lifetime.has(folded)) lifetimeMs ??= lifetimeOf(value);
    }
    for (const refreshToken of texts.slice(0, most + 1))
      found.push({ refreshToken, accessToken, lifetimeMs });
  }
  return found;
}

function textsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.filter((one) => typeof one === 'string').slice(0, most + 1);
  return (typeof value === 'string' && value !== '') || typeof value === 'number' ? [String(value)] : [];
}

/** Printable, without the name of the field, or a word that is long enough to be a secret: `OK`, say. */
function holdsNoToken(text: string, names: readonly TokenFields[]): boolean {
  if (/[^\t\r\n\x20-\x7e]|[^\s<>"'&;:]{16}/.test(text)) return false;
  const folded = foldName(text);
  return !names.some(({ refreshToken }) => folded.includes(foldName(refreshToken)));
}

/** Some shops write 0 for a lifetime without end: then, as for anything that is no lifetime, the default counts. */
function lifetimeOf(seconds: unknown): number | undefined {
  const number = typeof seconds === 'string' ? Number(seconds) : seconds;
  if (typeof number !== 'number' || !(number > 0)) return undefined;
  return Math.min(number, longestLifetimeSeconds) * 1000;
}

function parseJson(octets: Buffer): unknown {
  try {
    return JSON.parse(octets.toString('utf8').replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}

/** What a new token comes from. */
interface Descent {
  readonly subject: SubjectDigest | null;
  readonly family: FamilyId;
  /** Generation of the token that it was refreshed for; left out: its subject's own of this moment. */
  readonly since?: number | undefined;
}

/** How far the clocks of two primaries of one store may differ. Milliseconds. */
const clockSlackMs = 1000;

export function newFamily(): FamilyId {
  return randomBytes(12).toString('base64url') as FamilyId;
}

/** Records a token that the shop has issued; later, where the store is away. */
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
    const standing = subject === null ? undefined : await store.addToSubject(subject, token, restMs);
    // Asked for after the store's answer, so that the time of issue is rather too early than too late.
    const agoMs = monotonicNow() - issuedAtMs;
    const own = standing === undefined ? 0 : isLate ? generationAgo(standing, agoMs) : standing.generation;
    await store.record(token, { subject, generation: since ?? own, family, lifetimeMs: restMs });
    if (isLate) emit('recorded');
  });
  emit(isRecorded ? 'recorded' : 'record-delayed');
}

/**
 * The generation of a token that was issued so long ago: below that of any `mine` since, so that it was ended by it, and
 * above those before.
 */
function generationAgo({ generation, nowMicros }: Standing, agoMs: number): number {
  return Math.max(0, Math.min(generation, Math.floor(nowMicros - (agoMs + clockSlackMs) * 1000)));
}
