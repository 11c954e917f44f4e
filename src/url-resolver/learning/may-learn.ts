import type { CanonicalRequest } from '../../http/canonical-request.ts';
import { type FieldList, fieldValue } from '../../http/field-list.ts';
import { decodeFormText } from '../../http/form-encoding.ts';
import { forbidsToKeep, hasDirective, isPlainJson } from '../sources/reply-fields.ts';

/** Resource types whose responses carry `url`, as a path segment or in `include`. */
const carriers =
  /(?:^|[/,=])(?:abstract-products|abstract-alternative-products|related-products|up-selling-products|category-trees|category-nodes|cms-pages|merchants|catalog-search|catalog-search-suggestions)(?:$|[/,&])/;

/** What a person sees may be his alone. */
const personalFields = ['authorization', 'cookie', 'x-agent-authorization', 'x-anonymous-customer-unique-id'];

/** Whether the response to a request may concern everybody, and hold mappings. */
export function isTeachable({ method, path, query, fields }: CanonicalRequest): boolean {
  if (method !== 'GET' || !(carriers.test(path) || carriers.test(query))) return false;
  return personalFields.every((name) => fieldValue(fields, name) === undefined);
}

/**
 * Whether the store that a passing query names is known: PHP reads `.store`, `+_store` and more as `_store`, so of names
 * that begin with no letter only the plain one is understood.
 */
export function hasPlainNames(query: string): boolean {
  return query
    .slice(1)
    .split('&')
    .every((parameter) => {
      const name = parameter.split('=', 1)[0] ?? '';
      return name === '' || name === '_store' || /^[A-Za-z]/.test(decodeFormText(name) ?? '');
    });
}

/**
 * Whether mappings may be learnt from a 200 with these fields for `locale`. `no-cache, private` says nothing, since the shop's
 * framework puts it on every response; `private` by itself is somebody's intent. A response in another language than the
 * one that was negotiated here is not what others would get.
 */
export function isTrustworthy(fields: FieldList, locale: string): boolean {
  if (!isPlainJson(fields) || forbidsToKeep(fields)) return false;
  if (hasDirective(fields, 'private') && !hasDirective(fields, 'no-cache')) return false;
  if (fieldValue(fields, 'vary')?.trim() === '*') return false;
  const language = fieldValue(fields, 'content-language');
  return language === undefined || isSameLanguage(language, locale);
}

/** `de_DE` is `de`, and `de` is `de-AT` where the shop has no other (RFC 4647 section 3.3.1, both ways). */
function isSameLanguage(one: string, other: string): boolean {
  const [a, b] = [one, other].map((tag) => `${tag.trim().replaceAll('_', '-').toLowerCase()}-`);
  return a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a));
}
