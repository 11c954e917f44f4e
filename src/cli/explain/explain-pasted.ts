import type { ProtectedList } from '../../access/protected-list.ts';
import type { TokenInspection } from '../../access/token-inspection.ts';
import type { Explain } from '../../app/admin.ts';
import type { Config } from '../../config/schema.ts';
import { type FieldList, fieldValue, trimOws } from '../../http/field-list.ts';
import { isRejection, type RejectionName, rejectionTable } from '../../http/rejection.ts';
import { type AskedRequest, explainRequest, tokenToInspect } from './explain-request.ts';
import { type Explanation, explainMalformed, reasonPlace, withInspection } from './explanation.ts';
import { explanationText, inspectionFacts } from './explanation-text.ts';
import { type PastedRecord, readPastedRequest, readPastedToken } from './pasted-request.ts';

/** The answer of `explain --json`, of the console, and of whoever else asks. Exported for its tests. */
export interface ExplainedPaste extends Explanation {
  /** How the text was read, and what of it was not used. */
  readonly notes: readonly string[];
  /** What a record of the log says became of the request. */
  readonly record: PastedRecord | null;
}

interface PastedQuestion {
  /** Where the text names none; left out: GET, and a note says so. */
  readonly method?: string;
  /** Further fields, flat. With `Authorization`, `Cookie` or a body the request is whole: nothing else is guessed. */
  readonly fields?: FieldList;
  readonly body?: string | undefined;
}

/** What is refused before a request is understood. */
const malformed: ReadonlySet<string> = new Set<RejectionName>([
  ...(['bad-request', 'bad-request-target', 'bad-request-fields', 'bad-host', 'unexpected-body'] as const),
  ...(['method-override', 'method-not-allowed', 'request-timeout', 'payload-too-large'] as const),
  ...([
    'target-too-long',
    'expectation-failed',
    'fields-too-large',
    'transfer-encoding-unsupported',
  ] as const),
  'http-version-unsupported',
]);

const mostNotes = 20;

/**
 * What would happen to the request that somebody pasted, or what happened to the one of a record. Pure, and linear in the
 * length of the text. The second half of the answer has the token inspected, which may ask the key server.
 */
export function explainPasted(
  text: string,
  question: PastedQuestion,
  config: Config,
  list: ProtectedList,
): { readonly explained: ExplainedPaste; readonly asked: AskedRequest } {
  const pasted = readPastedRequest(text);
  const { record = null } = pasted;
  const notes = [...pasted.notes];
  if (notes.length > mostNotes)
    notes.splice(mostNotes, notes.length, `${notes.length - mostNotes} more notes`);
  const isMalformed = record?.decision === 'refused' && malformed.has(record.rejection ?? '');
  if (pasted.method === undefined && question.method === undefined && !isMalformed)
    notes.push('no method: GET is explained');
  const method = pasted.method ?? question.method ?? 'GET';
  if (question.method !== undefined && method !== question.method)
    notes.push(`the text says ${method}: that is explained, not ${question.method}`);
  const { target, host, version } = pasted;
  const fields = [...(pasted.fields ?? []), ...(question.fields ?? [])];
  const body = question.body ?? pasted.body;
  const hasToken = ['authorization', 'cookie'].some((name) => fieldValue(fields, name) !== undefined);
  const isWhole = pasted.isWhole === true || question.body !== undefined || hasToken;
  const asked: AskedRequest = { method, target, host, fields, body, version, isWhole };
  if (record !== null) notes.push(recordText(record));
  const explanation = isMalformed
    ? explainMalformed(asked, { rejection: record.rejection as RejectionName, reason: record.reason }, config)
    : explainRequest(asked, config, list);
  return { explained: { ...explanation, notes, record }, asked };
}

function recordText({ decision, status, rejection, reason, observed, requestId }: PastedRecord): string {
  const isOurs = rejection !== undefined && Object.hasOwn(rejectionTable, rejection);
  const why = [rejection, reason].filter((one) => one !== undefined).join(', ');
  const more = [
    ...(why === '' ? [] : [why]),
    ...(malformed.has(rejection ?? '')
      ? ['malformed: it was not understood, and nothing was decided by the list']
      : []),
    ...(observed === undefined ? [] : [`observe mode let pass ${observed}`]),
    ...(isOurs ? [`see ${reasonPlace(rejection as RejectionName, reason)}`] : []),
  ];
  return `the record says of ${requestId}: ${decision}, ${status}${more.map((one) => `; ${one}`).join('')}`;
}

/** Has the request's own token inspected, where there is one and the row needs it. */
export async function explainToken(
  { explained, asked }: ReturnType<typeof explainPasted>,
  config: Config,
  inspect: (token: string, scopes: readonly string[]) => Promise<TokenInspection>,
): Promise<ExplainedPaste> {
  const token = tokenToInspect(asked, explained, config);
  if (token === undefined) return explained;
  const inspection = await inspect(token, explained.token.scopes);
  return { ...explained, ...withInspection(explained, inspection, config) };
}

/** Name and value of `Name: value`; undefined: it is no field line. */
export function readFieldLine(line: string): [name: string, value: string] | undefined {
  const [, name, value] = /^([^\s:]+):(.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, trimOws(value)];
}

/**
 * `shopward explain` and `shopward token` for the console, under the list in force and with the keys of the running proxy.
 * Nothing of a token or a field is in the answer but what the checks name.
 */
export const explainForConsole: Explain = async ({ method, text, fields, body }, config, list, inspect) => {
  const token = readPastedToken(text);
  if (token !== undefined) {
    const inspection = await inspect(token, []);
    const isGood = !isRejection(inspection.verdict);
    return {
      verdict: isGood ? 'token-accepted' : 'token-refused',
      inspection,
      text: inspectionFacts(inspection),
    };
  }
  const lines = fields.map((line) => readFieldLine(line));
  const odd = lines.flatMap((line, i) =>
    line === undefined ? [`field ${i + 1} is no "Name: value": left out`] : [],
  );
  const question = { method, fields: lines.flatMap((line) => line ?? []), body };
  const explained = await explainToken(explainPasted(text, question, config, list), config, inspect);
  const notes = [...odd, ...explained.notes];
  return { ...explained, notes, text: explanationText(explained, notes) };
};
