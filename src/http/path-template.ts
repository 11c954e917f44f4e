import { decodeEscapes, decodeSegment } from './path-folding.ts';

/** A path of literals and `{name}`s, and perhaps a last `**` (the rest of the path, or nothing). */
export interface PathTemplate {
  /** The template, with its literals in canonical form. */
  readonly text: string;
  /** Without the last `**`; empty for `/` and `/**`. */
  readonly segments: readonly TemplateSegment[];
  readonly rest: boolean;
}

type TemplateSegment = { readonly literal: string } | { readonly name: string };

interface TemplateProblem {
  readonly problem: string;
  readonly offset: number;
}

/** Maximum number of segments of a path. A request with more is refused, so no template needs more. */
export const maxSegments = 64;
const parameter = /^\{[A-Za-z][A-Za-z0-9_-]*\}$/;
/** Characters of a canonical path besides escapes (RFC 3986 section 3.3), without `;`, which matching ignores, and `*`, a wildcard. */
const literalText = /^(?:[A-Za-z0-9._~!$&'()+,=:@-]|%[0-9A-Fa-f]{2})+$/;

/** Text that is its own canonical form under every reading, as most literals are. */
const plainLiteral = /^[A-Za-z0-9_-]+$/;

/** Refuses a template that no canonical path could match, or that would not mean what it seems to. */
export function parsePathTemplate(text: string): PathTemplate | TemplateProblem {
  if (!text.startsWith('/')) return { problem: 'a path begins with "/"', offset: 0 };
  const parts = text === '/' ? [] : text.slice(1).split('/');
  if (parts.length > maxSegments)
    return { problem: `no request has more than ${maxSegments} segments`, offset: 0 };
  const segments: TemplateSegment[] = [];
  const names = new Set<string>();
  let offset = 1;
  for (const [index, part] of parts.entries()) {
    if (part === '**' && index === parts.length - 1)
      return { text: textOf(segments, true), segments, rest: true };
    const segment = parseSegment(part, names);
    if (typeof segment === 'string') return { problem: segment, offset };
    segments.push(segment);
    offset += part.length + 1;
  }
  return { text: textOf(segments, false), segments, rest: false };
}

export function isTemplateProblem(parsed: PathTemplate | TemplateProblem): parsed is TemplateProblem {
  return 'problem' in parsed;
}

/** A template in lower case, without the names of its parameters: equal for templates that differ only in these. */
export function writtenShape(template: string): string {
  return template.toLowerCase().replace(/\{[^{}]*\}/g, '{}');
}

function textOf(segments: readonly TemplateSegment[], rest: boolean): string {
  const parts = segments.map((segment) => ('literal' in segment ? segment.literal : `{${segment.name}}`));
  return `/${[...parts, ...(rest ? ['**'] : [])].join('/')}`;
}

function parseSegment(part: string, names: Set<string>): TemplateSegment | string {
  if (plainLiteral.test(part)) return { literal: part };
  if (part === '') return 'an empty segment: leave out the extra "/"; requests match with and without it';
  if (parameter.test(part)) {
    const name = part.slice(1, -1);
    if (names.has(name)) return `the parameter {${name}} occurs twice in one path`;
    names.add(name);
    return { name };
  }
  return syntaxProblem(part) ?? parseLiteral(part);
}

function syntaxProblem(part: string): string | undefined {
  if (/[{}]/.test(part)) return `${quote(part)}: a parameter is a whole segment, written {name}`;
  if (part.includes('*'))
    return `${quote(part)}: a wildcard is {name} for one segment, or ** as the last segment`;
  if (/^:|^<.*>$/.test(part)) return `${quote(part)}: a parameter is written {name}`;
  if (part.includes(';')) return `${quote(part)}: leave out ";" and what follows; matching ignores it`;
  if (!literalText.test(part)) {
    return `${quote(part)} can never match: a path contains only A-Z a-z 0-9 - . _ ~ ! $ & ' ( ) + , = : @ and escapes such as %20 or %C3%BC`;
  }
  return undefined;
}

const faultTexts: Readonly<Record<string, string>> = {
  'bad-escape': 'its escapes are not UTF-8',
  'double-escape': 'it is encoded twice',
  backslash: 'backslashes are refused',
  fragment: 'an encoded "#" is refused',
  'encoded-question-mark': 'an encoded "?" is refused',
  'control-character': 'control characters are refused',
};

/** Checks and canonicalises a literal like the path of a request. */
function parseLiteral(part: string): TemplateSegment | string {
  const decoded = decodeEscapes(part);
  if ('fault' in decoded)
    return `${quote(part)} can never match: ${faultTexts[decoded.fault] ?? decoded.fault}`;
  const literal = decoded.path;
  if (literal.includes('%2F')) return `${quote(part)} can never match: an encoded "/" is refused`;
  const text = decodeSegment(literal);
  if (/^\.{1,2}$/.test(text)) return `${quote(part)} can never match: dot segments are refused`;
  if (text.includes(';')) return `${quote(part)}: leave out ";" and what follows; matching ignores it`;
  if (/[. \u00a0]$/.test(text))
    return `${quote(part)}: leave out dots and spaces at its end; matching ignores them`;
  return { literal };
}

/** On one line and of bounded length, whatever the file contains. */
function quote(part: string): string {
  return JSON.stringify(part.length > 80 ? `${part.slice(0, 80)}…` : part);
}

/** Compiled path templates whose parameters may contain `%2F`; null stands for a parameter. */
export type EncodedSlashRules = readonly (readonly (string | null)[])[];

/** Compiles templates such as `/abstract-products/{sku}`. Throws a TypeError that names a bad template. */
export function compileEncodedSlash(templates: readonly string[]): EncodedSlashRules {
  return templates.map((template) => {
    const parsed = parsePathTemplate(template);
    if (isTemplateProblem(parsed) || parsed.rest) throw new TypeError(`not a path template: ${template}`);
    return parsed.segments.map((segment) => ('literal' in segment ? segment.literal : null));
  });
}

/**
 * The other interpretation of a path with `%2F`: each `%2F` is a slash. Undefined if no template allows this path. Literals
 * must equal those of the template exactly: other spellings are not allowed.
 */
export function readEncodedSlashes(
  segments: readonly string[],
  rules: EncodedSlashRules,
): readonly string[] | undefined {
  const isAllowed = rules.some(
    (rule) =>
      rule.length === segments.length && rule.every((part, i) => part === null || part === segments[i]),
  );
  if (!isAllowed) return undefined;
  return segments.join('/').replaceAll('%2F', '/').replace(/^\/+/, '').split('/');
}
