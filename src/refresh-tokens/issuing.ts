import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValues } from '../http/field-list.ts';
import { reject } from '../http/rejection.ts';
import { trimOws } from '../http/trimming.ts';
import type { ForwardOutcome, ResponseEdits, UpstreamHooks } from '../upstream/hooks.ts';
import { type IssuedAnswer, type IssuedTokens, readIssuedTokens } from './issued-tokens.ts';
import { verdictOf } from './outcome.ts';
import { newFamily, recordIssued } from './recording.ts';
import type { TokenEndpoint } from './token-endpoints.ts';
import type { SubjectDigest } from './token-store.ts';
import type { Workings } from './workings.ts';

/** Answers in which the shop may issue tokens are read; one that may hold some that cannot be read is withheld. */
export function issueHooks(
  workings: Workings,
  endpoints: readonly TokenEndpoint[],
  request: Pick<CanonicalRequest, 'fields'>,
  isObserved: boolean,
): UpstreamHooks {
  return {
    ...readsAnswer(workings, request, isObserved),
    async onOutcome(outcome) {
      if (verdictOf(outcome) !== 'done') return {};
      const answer = readAnswer(workings, outcome, endpoints);
      if (answer === 'unreadable') return isObserved ? {} : withholdUnreadable();
      const family = newFamily();
      for (const issued of answer) {
        await recordIssued(workings, issued, { subject: subjectDigestOf(workings, issued), family });
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
  { answerBytes, answerWithinMs }: Workings,
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
  { answerBytes, emit }: Workings,
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
  { subjectOf, digests }: Workings,
  { accessToken }: IssuedTokens,
): SubjectDigest | null {
  const subject = accessToken === undefined ? undefined : subjectOf(accessToken);
  return subject === undefined ? null : digests.ofSubject(subject);
}
