import type { IncomingHttpHeaders } from 'node:http';
import type { ResourceRoute } from './call.ts';
import { PlainRefusal } from './shop-error.ts';

const allowedFields = [
  'accept',
  'content-type',
  'content-language',
  'accept-language',
  'authorization',
  'x-anonymous-customer-unique-id',
];

/** OPTIONS is always routed and never authenticated; list items are compared untrimmed, as in a real shop. */
export function answerPreflight(routes: readonly ResourceRoute[], type: string, fields: IncomingHttpHeaders) {
  const method = fields['access-control-request-method'];
  const names = fields['access-control-request-headers'];
  if (!fields.origin || !method || !names) throw new PlainRefusal(501, 'Not implemented.');
  const methods = routes
    .filter((route) => route.type === type)
    .flatMap((route) => Object.keys(route.methods));
  const allowedMethods = [...new Set([...methods, 'OPTIONS'])];
  const isAllowed = names.split(',').every((name) => allowedFields.includes(name.toLowerCase()));
  if (!allowedMethods.includes(method) || !isAllowed) throw new PlainRefusal(403, 'Not allowed.');
  return {
    'access-control-allow-methods': allowedMethods.join(', '),
    'access-control-allow-headers': allowedFields.join(', '),
  };
}
