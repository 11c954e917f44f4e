import type { Method } from './canonical-request.ts';

/**
 * Whether an upstream may read form parameters, and so a method override, from the body: a POST whose type is
 * urlencoded, multipart, or not given. Only the beginning counts: PHP ends the type at the first `;`, `,` or space.
 */
export function isFormPost(method: Method, contentType: string | undefined): boolean {
  return method === 'POST' && (contentType === undefined || formType.test(contentType));
}

const formType = /^\s*(?:$|[;,]|application\/x-www-form-urlencoded|multipart\/)/i;
