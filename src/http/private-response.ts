import { type FieldList, fieldValues, trimOws } from './field-list.ts';

/**
 * Fields that let a shared cache store an answer in spite of `Cache-Control`: targeted fields (RFC 9213) and their
 * like.
 */
const sharedCacheFields = /^(?:[a-z0-9-]+-cache-control|surrogate-control|x-accel-expires)$/i;
const sharing =
  /^(?:public|private|s-maxage|proxy-revalidate|stale-while-revalidate|stale-if-error)(?:$|[=\s])/i;

/**
 * Fields of an answer for one user whose token is in a cookie, in the query or in a subprotocol, where shared caches do not
 * look: they only know the field `Authorization` (RFC 9111 section 3.5), and `Vary`. So the answer is `private`, and varies by
 * `Cookie`. What its own user's browser may cache is not changed.
 */
export function toPrivate(fields: FieldList): string[] {
  const kept: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.toLowerCase() === 'cache-control' || sharedCacheFields.test(name)) continue;
    kept.push(name, fields[i + 1] as string);
  }
  kept.push('Cache-Control', privately(fieldValues(fields, 'cache-control').join(',')));
  const varies = fieldValues(fields, 'vary').join(',').toLowerCase().split(',').map(trimOws);
  if (!varies.includes('cookie') && !varies.includes('*')) kept.push('Vary', 'Cookie');
  return kept;
}

/** With field names (`private="Set-Cookie"`) the directive covers only those fields: then `no-store` replaces it. */
function privately(directives: string): string {
  if (directives.includes('"')) return 'private, no-store';
  const kept = directives
    .split(',')
    .map(trimOws)
    .filter((directive) => directive !== '' && !sharing.test(directive));
  return ['private', ...kept].join(', ');
}
