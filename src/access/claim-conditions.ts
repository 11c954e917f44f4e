import { decodeSegment } from '../http/path-folding.ts';
import { type ClaimPath, type Claims, claimPathText, readClaim } from './claim-paths.ts';

/** A literal of a condition. Compared by type and value: the text `1` is not the number 1. */
export type ConditionValue = string | number | boolean;

/**
 * One condition of a row's `require`. With `parameter` the claim must be the value of this path parameter or, with
 * `contains`, a list that has it. With `values` the claim must be one of them, or a list that has one of them.
 */
export interface ClaimCondition {
  /** The left side, as the list writes it; names the condition in `reason`. */
  readonly name: string;
  /** Names from the claim inwards. */
  readonly claim: readonly string[];
  readonly parameter?: string;
  readonly contains?: boolean;
  readonly values?: readonly ConditionValue[];
}

/** The conditions of a row, and its parameters (not decoded) by one reading of the path. Each reading must satisfy them. */
export interface RowConditions {
  readonly conditions: readonly ClaimCondition[];
  readonly params: Readonly<Record<string, string>>;
}

/** The first condition that is not met; undefined: all are met. Pure. */
export function findUnmet(rows: readonly RowConditions[], claims: Claims): ClaimCondition | undefined {
  for (const { conditions, params } of rows)
    for (const condition of conditions) if (!isMet(condition, params, claims)) return condition;
  return undefined;
}

function isMet(condition: ClaimCondition, params: RowConditions['params'], claims: Claims): boolean {
  const { parameter, contains = false, values = [] } = condition;
  const claim = readClaim(claims, condition.claim);
  if (parameter === undefined)
    return Array.isArray(claim)
      ? values.some((value) => claim.includes(value))
      : values.some((value) => value === claim);
  const value = Object.hasOwn(params, parameter) ? decodeSegment(params[parameter] ?? '') : '';
  if (!isPlain(value)) return false;
  return contains ? Array.isArray(claim) && claim.includes(value) : claim === value;
}

/**
 * Whether every server reads the decoded segment alike: visible US-ASCII without what may be decoded once more, ends a
 * segment or starts a parameter, and without a dot at its end, which some servers drop.
 */
function isPlain(value: string): boolean {
  return /^[\x21-\x7e]+$/.test(value) && !/[%/\\;?#]|\.$/.test(value);
}

/** What a row asks besides `scopes`, a sentence each. */
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

/** Whether a token that meets all conditions of `than` meets all conditions of `rows`, too. */
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

/** The condition as a person would say it, without values of a request. */
function conditionText({ claim, parameter, contains, values = [] }: ClaimCondition): string {
  const name = claimText(claim);
  if (parameter !== undefined) return `a claim ${name} that ${contains ? 'contains' : 'is'} {${parameter}}`;
  return `a claim ${name} that is or contains ${values.map((value) => JSON.stringify(value)).join(' or ')}`;
}

function claimText(claim: ClaimPath): string {
  const names = typeof claim === 'string' ? [claim] : claim;
  return names.some((name) => name.includes('.')) ? claimPathText([names]) : names.join('.');
}

/** Equal for conditions that let the same requests pass. */
function conditionKey({ claim, parameter, contains = false, values }: ClaimCondition): string {
  const literals = values?.map((value) => JSON.stringify(value)).toSorted();
  return JSON.stringify([claim, parameter, contains, literals]);
}
