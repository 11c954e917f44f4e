import type { Method } from './canonical-request.ts';

/**
 * Whether an upstream may read form parameters, and so a method override, from the body: a POST whose type is
 * urlencoded, multipart, or not given. The type ends where PHP ends it: at `;`, `,` or a space.
 */
export function isFormPost(method: Method, contentType: string | undefined): boolean {
  if (method !== 'POST') return false;
  if (contentType === undefined) return true;
  const [mediaType = ''] = contentType
    .trim()
    .toLowerCase()
    .split(/[;,\s]/, 1);
  return (
    mediaType === '' ||
    mediaType.startsWith('application/x-www-form-urlencoded') ||
    mediaType.startsWith('multipart/')
  );
}
