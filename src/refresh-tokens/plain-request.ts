import { isUtf8 } from 'node:buffer';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, fieldValues } from '../http/field-list.ts';
import { type FormField, readForm, readMultipart } from './plain-form.ts';
import { readJson } from './plain-json.ts';

/** Why a token request is not plain; a word for the log. */
export type NotPlain =
  | 'content-type'
  | 'content-coding'
  | 'charset'
  | 'too-long'
  | 'syntax'
  | 'too-many-fields'
  | 'other-spelling'
  | 'repeated'
  | 'not-text'
  | 'token-characters'
  | 'method';

/** How the body of a token request is written. */
export type PlainType =
  | { readonly kind: 'json' }
  | { readonly kind: 'form' }
  | { readonly kind: 'multipart'; readonly boundary: string };

/** Octets of a body that are looked into. A token request has a few KiB. */
const readableBytes = 65_536;

const codingFields = ['content-encoding', 'content-transfer-encoding'];

/**
 * The one type of a body, or why it is not plain: one Content-Type (RFC 9110 section 8.3) of JSON, an urlencoded form or
 * multipart/form-data, in UTF-8, under no coding. Shops choose their parser by it in ways of their own, and some ignore it.
 */
export function readType(fields: FieldList): PlainType | NotPlain {
  if (codingFields.some((name) => fieldValues(fields, name).length > 0)) return 'content-coding';
  const [value, ...more] = fieldValues(fields, 'content-type');
  if (value === undefined || more.length > 0) return 'content-type';
  const [, type = '', rest = ''] = mediaType.exec(value) ?? [];
  const parameters = readParameters(rest);
  if (parameters === undefined) return 'content-type';
  if ((parameters.get('charset') ?? 'utf-8').toLowerCase() !== 'utf-8') return 'charset';
  const allows = (...names: string[]) => [...parameters.keys()].every((name) => names.includes(name));
  const lower = type.toLowerCase();
  if (jsonType.test(lower))
    return allows('charset', 'version', 'profile', 'ext') ? { kind: 'json' } : 'content-type';
  if (lower === 'application/x-www-form-urlencoded')
    return allows('charset') ? { kind: 'form' } : 'content-type';
  const boundary = parameters.get('boundary') ?? '';
  const isMultipart = lower === 'multipart/form-data' && allows('boundary') && plainBoundary.test(boundary);
  return isMultipart ? { kind: 'multipart', boundary } : 'content-type';
}

/** Every field of query and body, as any reader has to read them; otherwise why they are not plain. */
export function readFields(
  { fields, query }: Pick<CanonicalRequest, 'fields' | 'query'>,
  body: Buffer,
): readonly FormField[] | NotPlain {
  const ofQuery = readForm(query.slice(1), 'query');
  if (typeof ofQuery === 'string' || body.length === 0) return ofQuery;
  if (body.length > readableBytes) return 'too-long';
  const type = readType(fields);
  if (typeof type === 'string') return type;
  if (!isUtf8(body) || body.includes(0)) return 'charset';
  const ofBody = readBody(type, body.toString('utf8'));
  return typeof ofBody === 'string' ? ofBody : [...ofQuery, ...ofBody];
}

function readBody(type: PlainType, text: string): readonly FormField[] | NotPlain {
  if (type.kind === 'json') return readJson(text);
  if (type.kind === 'multipart') return readMultipart(text, type.boundary);
  return formStart.test(text) ? readForm(text) : 'syntax';
}

/** A name; JSON, XML and comments begin otherwise, and some readers know them by that. */
const formStart = /^[\w%+.*~!$@&]/;

const mediaType = /^([\w.+-]+\/[\w.+-]+)[ \t]*((?:;.*)?)$/;
const jsonType = /^application\/(?:[\w.-]+\+)?json$/;
/** What clients make; others are read in too many ways. */
const plainBoundary = /^[\w-]{1,70}$/;
const parameter = /;[ \t]*([\w-]+)=(?:([\w./+:-]+)|"([\w./+:# -]*)")[ \t]*/y;

/** Parameters by lower-case name; undefined where one is malformed or there twice. */
function readParameters(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>();
  parameter.lastIndex = 0;
  for (let at = 0; at < text.length; at = parameter.lastIndex) {
    const match = parameter.exec(text);
    const name = match?.[1]?.toLowerCase();
    if (match === null || name === undefined || found.has(name)) return undefined;
    found.set(name, match[2] ?? match[3] ?? '');
  }
  return found;
}
