import { refuseAttributes } from './shop-error.ts';

export type Attributes = Readonly<Record<string, unknown>>;

/** Returns what is wrong with a value, in the words of the shop's validator. */
export type Rule = (value: unknown) => string | undefined;

/** An attribute whose rule is wrapped in `optional` may be absent. */
export type AttributeRules = Readonly<Record<string, Rule | OptionalRule>>;
export type OptionalRule = { readonly optional: Rule };

export function optional(rule: Rule): OptionalRule {
  return { optional: rule };
}

export const isText: Rule = (value) =>
  typeof value === 'string' && value.trim() !== '' ? undefined : 'This value should not be blank.';

export const isPassword: Rule = (value) => {
  if (typeof value !== 'string' || value === '') return 'This value should not be blank.';
  if (value.length < 8) return 'This value is too short. It should have 8 characters or more.';
  return value.length <= 64 ? undefined : 'This value is too long. It should have 64 characters or less.';
};

export const isEmail: Rule = (value) =>
  typeof value === 'string' && /^[^\s@]+@[^\s@]+$/.test(value)
    ? undefined
    : 'This value is not a valid email address.';

export const isQuantity: Rule = (value) =>
  Number.isSafeInteger(value) && Number(value) > 0 ? undefined : 'This value should be greater than 0.';

export const isInteger: Rule = (value) =>
  Number.isSafeInteger(value) ? undefined : 'This value should be of type integer.';

export const isBoolean: Rule = (value) =>
  typeof value === 'boolean' ? undefined : 'This value should be of type bool.';

export const isObject: Rule = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? undefined
    : 'This value should not be blank.';

export const isFilledList: Rule = (value) =>
  Array.isArray(value) && value.length > 0 ? undefined : 'This value should not be blank.';

export const isRating: Rule = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 5
    ? undefined
    : 'This value should be between 1 and 5.';

export function validateAttributes(attributes: Attributes, rules: AttributeRules): void {
  const messages: string[] = [];
  for (const [name, rule] of Object.entries(rules)) {
    const isOptional = typeof rule !== 'function';
    if (!Object.hasOwn(attributes, name)) {
      if (!isOptional) messages.push(`${name} => This field is missing.`);
      continue;
    }
    const message = (isOptional ? rule.optional : rule)(attributes[name]);
    if (message !== undefined) messages.push(`${name} => ${message}`);
  }
  if (messages.length > 0) refuseAttributes(messages);
}

export function textOf(attributes: Attributes, name: string, fallback = ''): string {
  const value = attributes[name];
  return typeof value === 'string' ? value : fallback;
}

export function numberOf(attributes: Attributes, name: string): number {
  const value = attributes[name];
  return typeof value === 'number' ? value : 0;
}

export function objectOf(attributes: Attributes, name: string): Attributes {
  const value = attributes[name];
  return typeof value === 'object' && value !== null ? (value as Attributes) : {};
}
