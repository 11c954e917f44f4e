import type { ProtectedList } from '../../access/protected-list.ts';
import type { TokenInspection } from '../../access/token-inspection.ts';
import type { Explain } from '../../app/admin.ts';
import type { Config } from '../../config/schema.ts';
import type { FieldList } from '../../http/field-list.ts';
import { type RejectionName, rejectionTable } from '../../http/rejection.ts';
import {
  type AskedRequest,
  type Explanation,
  explainMalformed,
  explainRequest,
  reasonPlace,
  tokenToInspect,
  withInspection,
} from './explanation.ts';
import { explanationText } from './explanation-text.ts';
import { type PastedRecord, readPastedRequest, readPastedToken } from './pasted-request.ts';

/** The answer of `explain --json`, of the console, and of whoever else asks. */
export interface ExplainedPaste extends Explanation {
  /** How the text was read, and what of it was not used. */
  readonly notes: readonly string[];
  /** What a record of the log says became of the request. */
  readonly record: PastedRecord | null;
}

export interface PastedQuestion {
  /** Where the text names none; left out: GET, and a note says so. */
  readonly method?: string;
  /** Further fields, flat. */
  readonly fields?: FieldList;
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
  const { target, host, body, version, isWhole } = pasted;
  const fields = [...(pasted.fields ?? []), ...(question.fields ?? [])];
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

/** `shopward explain` for the console, under the list in force, with its text for people. */
export const explainForConsole: Explain = (method, text, config, list) => {
  const { explained, asked } = explainPasted(text, { method }, config, list);
  const isToken = readPastedToken(text) !== undefined;
  const notes = [
    ...explained.notes,
    ...(isToken ? ['this is an access token: `shopward token` says which of its checks fails'] : []),
    ...(tokenToInspect(asked, explained, config) === undefined
      ? []
      : ['its token was not checked here: `shopward token` does']),
  ];
  return { ...explained, notes, text: explanationText(explained, notes) };
};
