import type { PhpParameters } from './php-query.ts';

/**
 * Method override is ON, as in a real shop: a POST becomes what the field `X-HTTP-Method-Override`, the form field
 * `_method` or the query parameter `_method` says. A proxy that looks at the method alone lets such requests through.
 */
export function effectiveMethod(
  method: string,
  overrideField: string | undefined,
  form: PhpParameters | null,
  query: PhpParameters,
): string {
  if (method !== 'POST') return method;
  const wanted = overrideField || form?.values.get('_method') || query.values.get('_method') || 'POST';
  return wanted.toUpperCase();
}
