import { readFileSync } from 'node:fs';
import type { RejectionName } from '../http/rejection.ts';

/** What a reason means, and what to do. */
interface ReasonText {
  readonly name: string;
  /** Undefined: the reason is that of a bad token or proof. */
  readonly status: string | undefined;
  readonly cause: string;
  readonly cure: string;
}

let known: readonly ReasonText[] | undefined;

/** Reads docs/reasons.md, the only source of these texts, which the package contains. Empty if the file is missing. */
export function readReasons(): readonly ReasonText[] {
  known ??= parseReasons(readDocument());
  return known;
}

function readDocument(): string {
  try {
    return readFileSync(new URL('../../docs/reasons.md', import.meta.url), 'utf8');
  } catch {
    return '';
  }
}

/** The rows of the tables, without Markdown except code spans. Exported for its tests. */
export function parseReasons(document: string): ReasonText[] {
  return document.split('\n').flatMap((line) => {
    const [names = '', ...cells] = line.slice(1, -1).split('|').map(withoutMarks);
    // Reasons of tokens and proofs have no status, and only one text.
    const [status, cause = '', cure = ''] = cells.length === 1 ? [undefined, ...cells] : cells;
    const text = { status: status?.replaceAll('`', ''), cause, cure };
    return [...names.matchAll(/<a id="([a-z-]+)">/g)].map(([, name = '']) => ({ name, ...text }));
  });
}

function withoutMarks(text: string): string {
  return text.replace(/\[([^\][]*)\]\([^()]*\)/g, '$1').trim();
}

/** Rejections of tokens, whose reasons have rows of their own. */
const ofTokens: readonly RejectionName[] = [
  'access-token-invalid',
  'insufficient-scope',
  'keys-unavailable',
  'proof-invalid',
];

function findReason(rejection: RejectionName, reason: string | undefined): ReasonText | undefined {
  const all = readReasons();
  const ofToken = ofTokens.includes(rejection)
    ? all.find(({ name, status }) => name === reason && status === undefined)
    : undefined;
  return ofToken ?? all.find(({ name }) => name === rejection);
}

/** The section of the docs about a refusal. */
export function reasonLink(rejection: RejectionName, reason?: string): string {
  return `docs/reasons.md#${findReason(rejection, reason)?.name ?? rejection}`;
}

/** What must change before a refusal is enforced: the client, a setting (of shopward or of the issuer), or either. */
export type Cause = 'client' | 'setting' | 'either';

const causes: Readonly<Record<string, Cause>> = {
  ...everyOne(
    'client',
    'expired inactive other-kind sender-constrained too-long scheme other-scheme repeated',
  ),
  ...everyOne('client', 'malformed proof-invalid if-match-missing if-match-invalid refresh-token-invalid'),
  ...everyOne('client', 'refresh-token-busy token-request-type token-request-not-plain'),
  ...everyOne('setting', 'audience issuer unknown-key signature algorithm critical subject too-old'),
  ...everyOne(
    'setting',
    'no-issue-time no-expiry claims not-before issued-in-future clock identity-too-long',
  ),
};

function everyOne(cause: Cause, names: string): Record<string, Cause> {
  return Object.fromEntries(names.split(' ').map((name) => [name, cause]));
}

/** What to do about a would-be refusal, and where the docs say more. */
export function adviceOn(rejection: RejectionName, reason: string | undefined) {
  const { name = rejection, cause = '', cure = '' } = findReason(rejection, reason) ?? {};
  return {
    cause: causes[name] ?? causes[rejection] ?? 'either',
    next: cure || cause,
    more: reasonLink(rejection, reason),
  };
}
