import type { ProtectedList } from '../../access/protected-list.ts';
import type { InspectToken } from '../../access/token-inspection.ts';
import type { Explain } from '../../app/admin.ts';
import type { Config } from '../../config/schema.ts';
import { type FieldList, fieldValue, trimOws } from '../../http/field-list.ts';
import { buildRejections, isRejection, type RejectionName, rejectionTable } from '../../http/rejection.ts';
import { reasonLink } from '../../rollout/reasons.ts';
import { type AskedRequest, explainRequest, tokenToInspect } from './explain-request.ts';
import { type Explanation, emptyExplanation, refusalOf, withInspection, withRefusal } from './explanation.ts';
import { explanationText, inspectionText } from './explanation-text.ts';
import { type PastedRecord, readPastedRequest, readPastedToken } from './pasted-request.ts';

/** The result of `explain --json`, also for the console. Exported for its tests. */
export interface ExplainedPaste extends Explanation {
  /** How the text was read, and which parts were not used. */
  readonly notes: readonly string[];
  /** The outcome of the request, if the text is a log record. */
  readonly record: PastedRecord | null;
}

interface PastedQuestion {
  /** Used where the text has no method. Default: GET, with a note. */
  readonly method?: string | undefined;
  /** Further fields, flat. With `Authorization`, `Cookie` or a body the request counts as complete: no field is assumed. */
  readonly fields?: FieldList;
  readonly body?: string | undefined;
}

/**
 * Explains what would happen to a pasted request, or what happened to the request of a log record. Pure, and linear in the
 * length of the text; `explainToken` then inspects the token, and may ask the key server. `unreadable`: why the text is not a
 * request; `explained` then means nothing.
 */
export function explainPasted(
  text: string,
  question: PastedQuestion,
  config: Config,
  list: ProtectedList,
): { readonly explained: ExplainedPaste; readonly asked: AskedRequest; readonly unreadable?: string } {
  const pasted = readPastedRequest(text);
  const { record = null } = pasted;
  const notes = [...pasted.notes];
  if (pasted.method === undefined && question.method === undefined && pasted.target !== '')
    notes.push('no method: GET is explained');
  const method = pasted.method ?? question.method ?? 'GET';
  if (question.method !== undefined && method !== question.method)
    notes.push(`the text says ${method}: that is explained, not ${question.method}`);
  const { target, host } = pasted;
  const fields = [...(pasted.fields ?? []), ...(question.fields ?? [])];
  const body = question.body ?? pasted.body;
  const hasToken = ['authorization', 'cookie'].some((name) => fieldValue(fields, name) !== undefined);
  const isWhole = question.body !== undefined || (pasted.isWhole ?? hasToken);
  const asked: AskedRequest = { method, target, host, fields, body, isWhole };
  if (record !== null) notes.push(recordText(record));
  const explain = () => explainRequest(asked, config, list);
  const explanation = record === null ? explain() : explainRecord(record, asked, config, explain);
  const explained = { ...explanation, notes, record };
  const { unreadable } = pasted;
  return { explained, asked, ...(unreadable !== undefined && { unreadable }) };
}

/** The lines for people. */
export function unreadableText(why: string): string[] {
  return [
    'this is no request that explain can read',
    `  because         ${why}`,
    "  what it reads   a method and a URL or a path, a curl command for a POSIX shell, a HAR file, a line of an access log, a record of shopward's log, a request id, an access token (write Bearer before an opaque one)",
  ];
}

/** Explains the request of a log record, with the refusal that the record names. */
function explainRecord(
  { decision, rejection, reason }: PastedRecord,
  asked: AskedRequest,
  config: Config,
  explain: () => Explanation,
): Explanation {
  if (decision !== 'refused' || !isOwnRejection(rejection)) return explain();
  const refused = { rejection, ...(reason !== undefined && { reason }) };
  const refusal = refusalOf(refused, buildRejections(config.rejections));
  // Without a path the request could not be parsed, so no plan can be made.
  return asked.target === ''
    ? { ...emptyExplanation(asked), verdict: 'refused', refusal }
    : withRefusal(explain(), refusal, false);
}

function isOwnRejection(name: string | undefined): name is RejectionName {
  return name !== undefined && Object.hasOwn(rejectionTable, name);
}

function recordText(record: PastedRecord): string {
  const { decision, status, rejection, reason, observed, requestId } = record;
  const why = [rejection, reason].filter((one) => one !== undefined).join(', ');
  const more = [
    ...(why === '' ? [] : [why]),
    ...(observed === undefined ? [] : [`observe mode did not enforce ${observed}`]),
    ...(isOwnRejection(rejection) ? [`see ${reasonLink(rejection, reason)}`] : []),
  ];
  return `the record says of ${requestId}: ${decision}, ${status}${more.map((one) => `; ${one}`).join('')}`;
}

/** Inspects the request's own token, if it has one and the row needs it. */
export async function explainToken(
  { explained, asked }: ReturnType<typeof explainPasted>,
  config: Config,
  inspect: InspectToken,
): Promise<ExplainedPaste> {
  const token = tokenToInspect(asked, explained, config);
  if (token === undefined) return explained;
  const inspection = await inspect(token, explained.token);
  return { ...explained, ...withInspection(explained, inspection, config) };
}

/** Parses `Name: value`; undefined: it is not a field line. */
export function readFieldLine(line: string): [name: string, value: string] | undefined {
  const [, name, value] = /^([^\s:]+):(.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, trimOws(value)];
}

/**
 * `shopward explain` and `shopward token` for the console, with the list in force and the keys of the running proxy. Of tokens
 * and fields the answer contains only what the checks name.
 */
export const explainForConsole: Explain = async ({ method, text, fields, body }, config, list, inspect) => {
  const token = readPastedToken(text);
  if (token !== undefined) {
    const inspection = await inspect(token);
    const isGood = !isRejection(inspection.verdict);
    return {
      verdict: isGood ? 'token-accepted' : 'token-refused',
      inspection,
      text: inspectionText(inspection),
    };
  }
  const lines = fields.map((line) => readFieldLine(line));
  const odd = lines.flatMap((line, i) =>
    line === undefined ? [`field ${i + 1} is not "Name: value" and is left out`] : [],
  );
  const question = { method, fields: lines.flatMap((line) => line ?? []), body };
  const answer = explainPasted(text, question, config, list);
  if (answer.unreadable !== undefined)
    return { verdict: 'unreadable', text: unreadableText(answer.unreadable) };
  const explained = await explainToken(answer, config, inspect);
  const notes = [...odd, ...explained.notes];
  return { ...explained, notes, text: explanationText(explained, notes) };
};
