import { type FieldList, isNamed, trimOws, varyingBy } from './field-list.ts';

/**
 * Fields that let a shared cache store an answer in spite of `Cache-Control`: targeted fields (RFC 9213) and their
 * like.
 */
const sharedCacheFields = /^(?:[a-z0-9-]+-cache-control|surrogate-control|x-accel-expires)$/i;
const sharing =
  /^(?:public|private|s-maxage|proxy-revalidate|stale-while-revalidate|stale-if-error)(?:$|[=\s])/i;

/**
 * Fields of an answer that needed a token. It is `private`, because `public`, `s-maxage` and `must-revalidate` let every shared
 * cache store the answer to a request with `Authorization` (RFC 9111 section 3.5). What its own user's browser may cache is
 * not changed. `byCookie`: the token may be in a cookie, so the answer also varies by `Cookie`.
 */
export function toPrivate(fields: FieldList, byCookie: boolean): string[] {
  const kept: string[] = [];
  let directives: string | undefined;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (isNamed(name, 'cache-control'))
      directives = directives === undefined ? value : `${directives},${value}`;
    else if (!sharedCacheFields.test(name)) kept.push(name, value);
  }
  kept.push('Cache-Control', directives === undefined ? 'private' : privately(directives));
  return byCookie ? varyingBy(kept, 'Cookie') : kept;
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
