import { isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml';
import type { PathTemplate } from '../http/path-template.ts';
import { nearestName } from '../lib/nearest-name.ts';
import { offsetOf } from '../lib/yaml-source.ts';
import type { ClaimCondition, ConditionValue } from './claim-conditions.ts';
import { textOf } from './protected-list-source.ts';

type Complain = (offset: number, text: string) => unknown;

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
  complain: Complain,
): ClaimCondition | undefined {
  const at = offsetOf(key);
  const claim = readClaimPath(key, at, complain);
  if (claim === undefined) return undefined;
  const name = claim.join('.');
  const parameter = isScalar(key) ? parameters.find((one) => one === name) : undefined;
  if (parameter !== undefined) return readComparison(name, value, at, complain);
  const values = (isSeq(value) ? value.items : [value]).map((item) => readLiteral(item, at, complain));
  if (values.length === 0) complain(offsetOf(value, at), `${name} needs at least one value`);
  const near = isScalar(key) ? nearestName(name, parameters) : undefined;
  if (near !== undefined)
    complain(
      at,
      `${name} is no parameter of the path: did you mean ${near}? For a claim of this name write [${name}]`,
    );
  if (values.length === 0 || values.includes(undefined)) return undefined;
  return { name, claim, values: values.filter((one) => one !== undefined) };
}

/** `sub.customer_reference`, or `{ claim: groups, contains: true }`. */
function readComparison(
  parameter: string,
  value: unknown,
  offset: number,
  complain: Complain,
): ClaimCondition | undefined {
  if (!isMap(value)) {
    const claim = readClaimPath(value, offset, complain);
    return claim && { name: parameter, parameter, claim };
  }
  let claim: readonly string[] | undefined;
  let contains = false;
  for (const { key, value: given } of value.items) {
    const name = isScalar(key) ? key.value : undefined;
    if (name === 'claim') claim = readClaimPath(given, offsetOf(key), complain);
    else if (name === 'contains' && isScalar(given) && typeof given.value === 'boolean')
      contains = given.value;
    else
      complain(
        offsetOf(key, offset),
        'a condition on a parameter has the keys claim, and contains: true or false',
      );
  }
  if (claim === undefined)
    complain(offset, `${parameter} needs the path of a claim, such as ${parameter}: sub`);
  return claim && { name: parameter, parameter, claim, ...(contains && { contains }) };
}

/** A claim path: names separated by dots, or a list of names, which may contain dots. */
function readClaimPath(node: unknown, offset: number, complain: Complain): readonly string[] | undefined {
  const items: readonly unknown[] = isSeq(node) ? node.items : [node];
  const names: string[] = [];
  for (const item of items) {
    const read = textOf(item);
    if ('problem' in read) {
      complain(offsetOf(item, offset), read.problem);
      return undefined;
    }
    for (const name of isSeq(node) ? [read.text] : read.text.split('.')) names.push(name);
  }
  if (names.length > 0 && names.length <= maxDepth && !names.includes('')) return Object.freeze(names);
  complain(
    offsetOf(node, offset),
    'a claim is one to ten names with single dots between them, or a list of names',
  );
  return undefined;
}

const maxDepth = 10;

function readLiteral(node: unknown, offset: number, complain: Complain): ConditionValue | undefined {
  const value = isScalar(node) && node.anchor === undefined ? node.value : undefined;
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value))
    return value as ConditionValue;
  complain(
    offsetOf(node, offset),
    'a claim is compared with a text, a whole number, true or false, or a list of these',
  );
  return undefined;
}
