import { isTemplateProblem, parsePathTemplate } from './path-template.ts';

/** Path templates in whose parameters `%2F` may stand, compiled; null stands for a parameter. */
export type EncodedSlashRules = readonly (readonly (string | null)[])[];

/** Compiles templates such as `/abstract-products/{sku}`. Throws a TypeError that names the one that is no such path. */
export function compileEncodedSlash(templates: readonly string[]): EncodedSlashRules {
  return templates.map((template) => {
    const parsed = parsePathTemplate(template);
    if (isTemplateProblem(parsed) || parsed.rest) throw new TypeError(`not a path template: ${template}`);
    return parsed.segments.map((segment) => ('literal' in segment ? segment.literal : null));
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

function meets(segments: readonly string[], wanted: EncodedSlashRules[number]): boolean {
  if (segments.length !== wanted.length) return false;
  return wanted.every((segment, i) => segment === null || segment === segments[i]);
}
