/** Path templates in whose parameters `%2F` may stand, compiled; null stands for a parameter. */
export type EncodedSlashRules = readonly EncodedSlashRule[];

interface EncodedSlashRule {
  readonly segments: readonly (string | null)[];
  /** A last `**`: any further segments, in which `%2F` may stand too. */
  readonly hasRest: boolean;
}

/**
 * Compiles templates such as `/abstract-products/{sku}`. Throws a TypeError that names the template which is not a path
 * of literals, `{name}`s and perhaps a last `**`.
 */
export function compileEncodedSlash(templates: readonly string[]): EncodedSlashRules {
  return templates.map((template) => {
    const parts = template.slice(1).split('/');
    const hasRest = parts.at(-1) === '**';
    if (hasRest) parts.pop();
    if (!template.startsWith('/') || !parts.every(isTemplateSegment)) {
      throw new TypeError(`not a path template: ${template}`);
    }
    return { segments: parts.map((part) => (part.startsWith('{') ? null : part)), hasRest };
  });
}

/**
 * The other reading of a path with `%2F`: each one a slash. Undefined when no template allows it where it stands. The
 * literals of a template are met exactly: a lenient spelling gets no leave.
 */
export function readEncodedSlashes(
  segments: readonly string[],
  rules: EncodedSlashRules,
): readonly string[] | undefined {
  if (!rules.some((rule) => meets(segments, rule))) return undefined;
  return segments.join('/').replaceAll('%2F', '/').replace(/^\/+/, '').split('/');
}

function meets(segments: readonly string[], { segments: wanted, hasRest }: EncodedSlashRule): boolean {
  if (hasRest ? segments.length < wanted.length : segments.length !== wanted.length) return false;
  return wanted.every((segment, i) => segment === null || segment === segments[i]);
}

function isTemplateSegment(part: string): boolean {
  return /^\{[^{}]+\}$/.test(part) || /^[^{}*%]*$/.test(part);
}
