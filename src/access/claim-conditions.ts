import { decodeSegment } from '../http/path-folding.ts';
import { type Claims, claimPathText, readClaim } from './claim-paths.ts';

/** A literal of a condition. Compared by type and value: the string `1` is not the number 1. */
export type ConditionValue = string | number | boolean;

/**
 * One condition of a row's `require`. With `parameter` the claim must equal this path parameter or, with `contains`,
 * be a list that contains it. With `values` the claim must be one of them, or a list that contains one of them.
 */
export interface ClaimCondition {
  /** The left side as written in the list; names the condition in `reason`. */
  readonly name: string;
  /** The name of the claim, then the names of nested members. */
  readonly claim: readonly string[];
  readonly parameter?: string;
  readonly contains?: boolean;
  readonly values?: readonly ConditionValue[];
}

/** The conditions of a row, and its parameters (not decoded) in one interpretation of the path. Each interpretation must meet them. */
export interface RowConditions {
  readonly conditions: readonly ClaimCondition[];
  readonly params: Readonly<Record<string, string>>;
}

export function findUnmet(rows: readonly RowConditions[], claims: Claims): ClaimCondition | undefined {
  for (const { conditions, params } of rows)
    for (const condition of conditions) if (!isMet(condition, params, claims)) return condition;
  return undefined;
}

function isMet(condition: ClaimCondition, params: RowConditions['params'], claims: Claims): boolean {
  const { parameter, contains = false, values = [] } = condition;
  const claim = readClaim(claims, condition.claim);
  if (parameter === undefined)
    return values.some((value) => (Array.isArray(claim) ? claim.includes(value) : claim === value));
  const value = Object.hasOwn(params, parameter) ? decodeSegment(params[parameter] ?? '') : '';
  if (!isPlain(value)) return false;
  return contains ? Array.isArray(claim) && claim.includes(value) : claim === value;
}

/**
 * Whether every server reads the decoded segment alike: visible US-ASCII without characters that some server decodes again
 * or takes for the end of a segment, and without a final dot, which some servers drop.
 */
function isPlain(value: string): boolean {
  return /^[\x21-\x7e]+$/.test(value) && !/[%/\\;?#]|\.$/.test(value);
}

/** What a row requires besides `scopes`, each as a phrase such as `a proof of possession`. */
export function conditionTexts({ anyScopes, require = [], proof }: Conditional): string[] {
  const bound = proof === undefined ? [] : ['a proof of possession'];
  const any = anyScopes === undefined ? [] : [`one of the scopes ${anyScopes.join(', ')}`];
  return [...bound, ...any, ...require.map(conditionText)];
}

/** The parts of a row that depend on claims, `cnf` among them. */
export interface Conditional {
  readonly anyScopes?: readonly string[] | undefined;
  readonly require?: readonly ClaimCondition[] | undefined;
  readonly proof?: 'required' | undefined;
}

/** Whether every token that meets the conditions of `than` also meets those of `rows`. Each `require` of `rows` must be in `than`. */
export function asksNoMore(rows: readonly Conditional[], than: readonly Conditional[]): boolean {
  const kept = new Set(than.flatMap(({ require = [] }) => require.map(conditionKey)));
  return rows.every(
    ({ anyScopes, require = [], proof }) =>
      (proof === undefined || than.some((row) => row.proof !== undefined)) &&
      (anyScopes === undefined ||
        than.some((row) => row.anyScopes?.every((scope) => anyScopes.includes(scope)))) &&
      require.every((condition) => kept.has(conditionKey(condition))),
  );
}

function conditionText({ claim, parameter, contains, values = [] }: ClaimCondition): string {
  const name = claim.some((one) => one.includes('.')) ? claimPathText([claim]) : claim.join('.');
  if (parameter !== undefined) return `a claim ${name} that ${contains ? 'contains' : 'is'} {${parameter}}`;
  return `a claim ${name} that is or contains ${values.map((value) => JSON.stringify(value)).join(' or ')}`;
}

/** Equal for conditions that let the same requests pass. */
function conditionKey({ claim, parameter, contains = false, values }: ClaimCondition): string {
  const literals = values?.map((value) => JSON.stringify(value)).toSorted();
  return JSON.stringify([claim, parameter, contains, literals]);
}
