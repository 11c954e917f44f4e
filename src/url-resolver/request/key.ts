import { hash } from 'node:crypto';

const longestPlainUrl = 200;

/**
 * Key of a URL in a partition. The prefix is JSON, so it ends where it says; a long URL is put as its SHA-256, so that
 * a key is never longer than a few hundred characters.
 */
export function mappingKey(prefix: string, url: string): string {
  return url.length <= longestPlainUrl ? `${prefix}:${url}` : `${prefix}#${hash('sha256', url, 'base64url')}`;
}
