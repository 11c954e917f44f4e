import { refuseAttributes } from './refusals.ts';

export type Attributes = Readonly<Record<string, unknown>>;

/** A condition on a value, and the message of the shop's validator for other values. */
export type Rule = readonly [isValid: (value: unknown) => boolean, message: string, isOptional?: true];

export type AttributeRules = Readonly<Record<string, Rule>>;

/** The attribute may be absent. */
export function optional([isValid, message]: Rule): Rule {
  return [isValid, message, true];
}

function textOf(pattern: RegExp, message: string): Rule {
  return [(value) => typeof value === 'string' && pattern.test(value), message];
}

function integerOf(least: number, most: number, message: string): Rule {
  return [(value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most, message];
}

const blank = 'This value should not be blank.';

export const text = textOf(/\S/, blank);
export const email = textOf(/^[^\s@]+@[^\s@]+$/, 'This value is not a valid email address.');
export const password = textOf(/^.{8,64}$/s, 'This value should have 8 to 64 characters.');
export const quantity = integerOf(1, Number.MAX_SAFE_INTEGER, 'This value should be greater than 0.');
export const rating = integerOf(1, 5, 'This value should be between 1 and 5.');
export const integer: Rule = [Number.isSafeInteger, 'This value should be of type integer.'];
export const boolean: Rule = [(value) => typeof value === 'boolean', 'This value should be of type bool.'];
export const object: Rule = [isRecord, blank];
export const filledList: Rule = [(value) => Array.isArray(value) && value.length > 0, blank];

export function validateAttributes(attributes: Attributes, rules: AttributeRules): void {
  const messages = Object.entries(rules).flatMap(([name, [isValid, message, isOptional]]) => {
    if (!Object.hasOwn(attributes, name)) return isOptional ? [] : [`${name} => This field is missing.`];
    return isValid(attributes[name]) ? [] : [`${name} => ${message}`];
  });
  if (messages.length > 0) refuseAttributes(messages);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function readText(attributes: Attributes, name: string, fallback = ''): string {
  const value = attributes[name];
  return typeof value === 'string' ? value : fallback;
}
