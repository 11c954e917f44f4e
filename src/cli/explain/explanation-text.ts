import { requirementText } from '../../access/requirement-check.ts';
import type { TokenInspection } from '../../access/token-inspection.ts';
import { isRejection } from '../../http/rejection.ts';
import { adviceOn } from '../../rollout/reasons.ts';
import type { InterpretationStep } from '../../routes/path-table.ts';
import type { ExplainedRow, Explanation, Refusal } from './explanation.ts';

/** The explanation for people, one line for each fact. */
export function explanationText(explanation: Explanation, notes: readonly string[]): string[] {
  const { request, canonicalPath, refusal, observed, rows, whyNot, verdict, filters, forward } = explanation;
  const lines = [`${request.method} ${request.target}`];
  const say = (name: string, text: string) => lines.push(`  ${name.padEnd(15)} ${text}`);
  for (const note of notes) say('as pasted', note);
  if (canonicalPath !== null && canonicalPath !== request.target.split('?')[0]) {
    say('canonical path', canonicalPath);
  }
  if (verdict === 'refused' && refusal !== null) {
    say('refused', speak(refusal));
    if (refusal.reason !== undefined) say('because', refusal.reason);
    say('see', refusal.see);
    say('forwarded', 'no: the upstream is not asked');
    return lines;
  }
  if (explanation.ownEndpoint !== null) {
    for (const { text } of filters) say('answered', text);
    return lines;
  }
  say(verdict, verdictText(explanation));
  for (const row of rows) say('row', rowText(row));
  for (const why of whyNot) say('why not', why);
  for (const { name, label = name, text, found } of filters) {
    say(label, text);
    if (found !== undefined) say(label, found);
  }
  const { limits } = explanation;
  if (limits !== null)
    say('limits', `${limits.requestBodyBytes} bytes of body, ${limits.responseTimeoutMs} ms for the shop`);
  const { inspection } = explanation.token;
  if (inspection !== null) say('its token', tokenText(inspection.verdict));
  if (observed !== null) say('only noted', `${speak(observed)}${because(observed)}, see ${observed.see}`);
  if (refusal !== null) {
    say('then refused', `${speak(refusal)}${because(refusal)}`);
    say('see', refusal.see);
  }
  if (forward === null) say('forwarded', 'no: the upstream is not asked');
  else say('forwarded', `${forward.method} ${forward.target} to ${forward.upstream}`);
  return lines;
}

/** The verdict on a token, then the facts behind it, one line for each. */
export function inspectionText({ verdict, facts }: TokenInspection): string[] {
  const found = Object.entries(facts);
  if (isRejection(verdict)) {
    const { next, more } = adviceOn(verdict.rejection, verdict.reason);
    found.unshift(['why', next], ['see', more]);
  }
  const lines = found.flatMap(([name, text]) => (text === undefined ? [] : [`  ${name.padEnd(15)} ${text}`]));
  return [tokenText(verdict), ...lines];
}

function verdictText({ token }: Explanation): string {
  if (!token.needed || token.missing === null || token.invalid === null) {
    return 'no row of the protected list matches, no token is needed';
  }
  const needs = requirementText(token);
  const { missing, invalid } = token;
  const locations = token.in.every((one) => one === 'header') ? '' : `, in one of ${token.in.join(', ')}`;
  const refusals = `${missing.status} code ${missing.code} without, ${invalid.status} code ${invalid.code} with a bad one`;
  const orShop = token.credentials === 'shop' ? ', or credentials that the shop checks' : '';
  const observed = token.observed ? '; observe mode: refusals are only logged and counted' : '';
  return `needs a valid access token${needs}${locations}${orShop}; ${refusals}${observed}`;
}

function rowText(explained: ExplainedRow): string {
  const { row, group, file, line, scopes, conditions, observe, exact, reading } = explained;
  const more = [
    `group ${group}`,
    ...(scopes.length > 0 ? [`scopes ${scopes.join(' ')}`] : []),
    ...conditions.map((text) => `needs ${text}`),
    ...(observe ? ['observe'] : []),
    ...(exact
      ? []
      : [`by a lenient interpretation of the request: ${reading.map((step) => stepTexts[step]).join(', ')}`]),
  ];
  return `${row} (${file}:${line}), ${more.join(', ')}`;
}

const stepTexts: Readonly<Record<InterpretationStep, string>> = {
  'encoded-slash': 'its encoded slash as a slash',
  params: 'without what follows a semicolon or a script',
  'empty-segments': 'without its empty segments',
  prefix: 'without its prefix',
  version: 'without the version in front',
  'format-suffix': 'without its format suffix',
  'last-pair': 'without the segments between two pairs of type and id',
  'item-form': 'with an id after the row',
  'without-version': "without the row's version",
  spelling: 'in another spelling',
  'empty-id': 'with an empty id',
  'longer-path': 'as the end of a longer path',
  'method-override': 'a POST that the shop may take for this method',
};

function tokenText(verdict: TokenInspection['verdict']): string {
  if (!isRejection(verdict)) return 'accepted';
  return `refused: ${[verdict.rejection, verdict.reason].filter(Boolean).join(', ')}`;
}

function because({ reason }: Refusal): string {
  return reason === undefined ? '' : ` (${reason})`;
}

function speak({ status, code, detail }: Refusal): string {
  return `${status} code ${code}: ${detail}`;
}
