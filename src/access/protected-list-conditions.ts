import { isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml';
import type { PathTemplate } from '../http/path-template.ts';
import { nearestName } from '../lib/nearest-name.ts';
import type { ClaimCondition, ConditionValue } from './claim-conditions.ts';
import { type Complain, textOf, within } from './protected-list-source.ts';

/**
 * Reads `require` of a row: `{ customer_id: sub.customer_reference }` compares a parameter of the path with a claim,
 * `{ "realm_access.roles": [analyst, admin] }` a claim with literals.
 */
export function readRequire(map: YAMLMap, path: PathTemplate, complain: Complain): readonly ClaimCondition[] {
  const parameters = path.segments.flatMap((segment) => ('name' in segment ? [segment.name] : []));
  return Object.freeze(map.items.flatMap((pair) => readCondition(pair, parameters, complain) ?? []));
}

function readCondition(
  { key, value }: Pair,
  parameters: readonly string[],
  complainTo: Complain,
): ClaimCondition | undefined {
  const complain = within(key, complainTo);
  const claim = readClaimPath(key, complain);
  if (claim === undefined) return undefined;
  const name = claim.join('.');
  const parameter = isScalar(key) ? parameters.find((one) => one === name) : undefined;
  if (parameter !== undefined) return readComparison(name, value, complain);
  const values = (isSeq(value) ? value.items : [value]).map((item) => readLiteral(item, complain));
  if (values.length === 0) complain(value, `${name} needs at least one value`);
  const near = isScalar(key) ? nearestName(name, parameters) : undefined;
  if (near !== undefined)
    complain(
      key,
      `${name} is no parameter of the path: did you mean ${near}? For a claim of this name write [${name}]`,
    );
  if (values.length === 0 || values.includes(undefined)) return undefined;
  return { name, claim, values: values.filter((one) => one !== undefined) };
}

/** `sub.customer_reference`, or `{ claim: groups, contains: true }`. */
function readComparison(parameter: string, value: unknown, complain: Complain): ClaimCondition | undefined {
  if (!isMap(value)) {
    const claim = readClaimPath(value, complain);
    return claim && { name: parameter, parameter, claim };
  }
  let claim: readonly string[] | undefined;
  let contains = false;
  for (const { key, value: given } of value.items) {
    const name = isScalar(key) ? key.value : undefined;
    if (name === 'claim') claim = readClaimPath(given, within(key, complain));
    else if (name === 'contains' && isScalar(given) && typeof given.value === 'boolean')
      contains = given.value;
    else complain(key, 'a condition on a parameter has the keys claim, and contains: true or false');
  }
  // `null` has no position, so the mistake is reported at the key of the condition.
  if (claim === undefined)
    complain(null, `${parameter} needs the path of a claim, such as ${parameter}: sub`);
  return claim && { name: parameter, parameter, claim, ...(contains && { contains }) };
}

/** A claim path: names separated by dots, or a list of names, which may contain dots. */
function readClaimPath(node: unknown, complain: Complain): readonly string[] | undefined {
  const items: readonly unknown[] = isSeq(node) ? node.items : [node];
  const names: string[] = [];
  for (const item of items) {
    const text = textOf(item, complain);
    if (text === undefined) return undefined;
    for (const name of isSeq(node) ? [text] : text.split('.')) names.push(name);
  }
  if (names.length > 0 && names.length <= maxDepth && !names.includes('')) return Object.freeze(names);
  complain(node, 'a claim is one to ten names with single dots between them, or a list of names');
  return undefined;
}

const maxDepth = 10;

function readLiteral(node: unknown, complain: Complain): ConditionValue | undefined {
  const value = isScalar(node) && node.anchor === undefined ? node.value : undefined;
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value))
    return value as ConditionValue;
  complain(node, 'a claim is compared with a text, a whole number, true or false, or a list of these');
  return undefined;
}
