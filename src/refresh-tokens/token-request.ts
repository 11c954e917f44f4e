import { isUtf8 } from 'node:buffer';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValues, trimOws } from '../http/field-list.ts';
import { decodeOctets } from '../http/form-encoding.ts';
import { isContainer, type JsonObject, parseJson } from '../lib/json.ts';
import type { TokenEndpoint } from './endpoints.ts';
import { isPlainToken } from './token-digest.ts';

/** Why a token request is refused; a word for the log. The first two are 415 (RFC 9110 section 15.5.16), the others 400. */
export type NotPlain =
  | 'content-type'
  | 'content-coding'
  | 'charset'
  | 'too-long'
  | 'syntax'
  | 'too-many-fields'
  | 'name'
  | 'other-spelling'
  | 'repeated'
  | 'not-text'
  | 'query'
  | 'token-characters'
  | 'method';

/** The token in the body of a request, if there is one; `notPlain`: another parser may read another token. */
export type Candidate = { readonly token: string | undefined } | { readonly notPlain: NotPlain };

/**
 * Reads the token of a request to one of `endpoints`. The shop's parser is not known, so the request must match an allowlist:
 * an uncoded UTF-8 body of JSON or an urlencoded form, whose names no parser reads in two ways. Linear in its length.
 */
export function findCandidate(
  { fields, query }: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
  endpoints: readonly TokenEndpoint[],
): Candidate {
  const names = endpoints.map(({ fields: { refreshToken } }) => refreshToken);
  const inQuery = readForm(query.slice(1));
  const inBody = body.length === 0 ? [] : readBody(fields, body, endpoints);
  if (typeof inQuery === 'string') return { notPlain: inQuery };
  if (typeof inBody === 'string') return { notPlain: inBody };
  const queried = tokenAmong(inQuery, names);
  if ('notPlain' in queried) return queried;
  if (queried.token !== undefined) return { notPlain: 'query' };
  const found = tokenAmong(inBody, names);
  if ('notPlain' in found || found.token === undefined) return found;
  if (found.token === '') return { token: undefined };
  return isPlainToken(found.token) ? found : { notPlain: 'token-characters' };
}

const json = /^application\/(?:[\w.-]+\+)?json$/i;
const form = /^application\/x-www-form-urlencoded$/i;
const utf8Parameter = /^charset=(?:utf-8|"utf-8")$/i;
/** Parameters of JSON:API 1.1, and `version`, by which some shops choose the version of a resource. */
const jsonParameter = /^(?:version|profile|ext)=(?:[\w./+:-]+|"[\w./+:# -]*")$/i;
const codingFields = ['content-encoding', 'content-transfer-encoding'];

/** The body's format, or a reason for its refusal. A form is refused if all `endpoints` require JSON. */
export function readType(
  fields: FieldList,
  endpoints: readonly TokenEndpoint[],
): 'json' | 'form' | { readonly notPlain: NotPlain } {
  if (codingFields.some((name) => fieldValues(fields, name).length > 0))
    return { notPlain: 'content-coding' };
  const [value = '', ...more] = fieldValues(fields, 'content-type');
  const [type = '', ...parameters] = value.split(';').map(trimOws);
  const isJson = json.test(type);
  const isKnown = (one: string) => utf8Parameter.test(one) || (isJson && jsonParameter.test(one));
  const isPlain = more.length === 0 && (isJson || form.test(type)) && parameters.every(isKnown);
  if (!isPlain || (!isJson && endpoints.every(({ format }) => format === 'json')))
    return { notPlain: 'content-type' };
  return isJson ? 'json' : 'form';
}

/** A field of a form or member of a JSON object, decoded. */
interface Field {
  /** Null for an element of a list. */
  readonly name: string | null;
  /** Null unless it is a text. */
  readonly value: string | null;
}

/** Octets of the longest body that is read; a token request has a few KiB. */
const readableBytes = 65_536;
/** Maximum number of fields of one form. PHP and Express ignore those after the 1000th. */
const maxFields = 256;
/** Maximum number of levels of JSON. Parsers have limits of their own, and some read nothing of a deeper text. */
const deepest = 32;

function readBody(
  fields: FieldList,
  body: Buffer,
  endpoints: readonly TokenEndpoint[],
): readonly Field[] | NotPlain {
  if (body.length > readableBytes) return 'too-long';
  const type = readType(fields, endpoints);
  if (typeof type === 'object') return type.notPlain;
  if (!isUtf8(body) || body.includes(0)) return 'charset';
  return type === 'json' ? readJson(body.toString()) : readForm(body.toString());
}

/** An urlencoded form (WHATWG URL section 5), or a query. */
function readForm(text: string): readonly Field[] | NotPlain {
  const pairs = text.split('&').filter((pair) => pair !== '');
  if (pairs.length > maxFields) return 'too-many-fields';
  return pairs.map((pair) => {
    const [name = ''] = pair.split('=', 1);
    return { name: decode(name), value: decode(pair.slice(name.length + 1)) };
  });
}

/** Decodes percent-encoding and `+`. A malformed escape stays as it is, invalid UTF-8 becomes U+FFFD. */
function decode(text: string): string {
  return decodeOctets(Buffer.from(text)).toString();
}

/** The members of a JSON text (RFC 8259) at any depth. */
function readJson(text: string): readonly Field[] | NotPlain {
  const document = parseJson(text);
  if (document === undefined) return 'syntax';
  const found: Field[] = [];
  let level = [[document] as unknown].filter(isContainer);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > deepest) return 'too-many-fields';
    const inner: JsonObject[] = [];
    for (const each of level) {
      const isList = Array.isArray(each);
      for (const [name, value] of Object.entries(each)) {
        const isText = typeof value === 'string';
        found.push({ name: isList ? null : name, value: isText ? value : value === null ? '' : null });
        if (isContainer(value)) inner.push(value);
      }
    }
    level = inner;
  }
  // `JSON.parse` keeps one of two members of the same name; other parsers keep the other one.
  const names = found.filter(({ name }) => name !== null).length;
  return names === namesIn(text) ? found : 'repeated';
}

/** How many names a valid JSON text has: as many as colons outside of texts. */
function namesIn(text: string): number {
  let count = 0;
  let isText = false;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text[i];
    if (unit === '"') isText = !isText;
    else if (isText && unit === '\\') i += 1;
    else if (!isText && unit === ':') count += 1;
  }
  return count;
}

/** Brackets, by which parsers nest fields, are allowed only in a configured name. */
const plainName = /^[A-Za-z0-9_.-]+$/;

/** The value of the one field that has any of these names. */
function tokenAmong(fields: readonly Field[], names: readonly string[]): Candidate {
  const folded = names.map(foldName);
  let token: string | undefined;
  for (const { name, value } of fields) {
    if (name !== null && names.includes(name)) {
      if (token !== undefined) return { notPlain: 'repeated' };
      if (value === null) return { notPlain: 'not-text' };
      token = value;
    } else if (name !== null && !plainName.test(name)) {
      return { notPlain: 'name' };
    } else if (folded.some((one) => resembles(name ?? '', one) || hides(value ?? '', one))) {
      return { notPlain: 'other-spelling' };
    }
  }
  return { token };
}

/** A name without what some parser ignores or replaces: case, `_`, `-` and dots. */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Whether some parser may take a name for the field: in another spelling, or nested by dots. */
function resembles(name: string, folded: string): boolean {
  return foldName(name) === folded || name.split('.').some((part) => foldName(part) === folded);
}

/**
 * Whether a parser of another format, or one that splits or decodes again, may find the field in a value: the value has the
 * field's name and characters that words do not have. `refresh_token` as a grant and `refresh-tokens` as a type are words.
 */
function hides(value: string, folded: string): boolean {
  return !words.test(value) && (foldName(value).includes(folded) || foldName(decode(value)).includes(folded));
}

const words = /^[\w .:/-]*$/;
