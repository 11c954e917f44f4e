import type { CanonicalRequest } from '../http/canonical-request.ts';
import {
  createSegmentInterner,
  emptyId,
  type FormatSuffixes,
  foldSegment,
  foldSuffixes,
  type IdOf,
  isVersionSegment,
  looseSegment,
  openLiterals,
  type SegmentInterner,
  unknownId,
  withoutFormatSuffix,
  withoutFormatSuffixes,
} from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';

/** The interpretations of a path that count besides the literal one (`request` in the configuration). */
export interface PathRules {
  /** Prefixes that the shop strips before it routes a path, such as `/index.php`; literals only. */
  readonly ignoredPrefixes: readonly string[];
  /** Whether a first segment such as `v1` or `1.0` may be dropped. Default true. */
  readonly versionSegments?: boolean;
  /** Whether a row that ends in a name also covers one id after it. Default true. */
  readonly itemForms?: boolean;
  /** Whether the shop looks only at the last pair of type and id in a path and any one pair before it. Default true. */
  readonly lastPair?: boolean;
  /** Extensions that the shop may cut off the last segment, in any case; `*`: every extension. Default none. */
  readonly formatSuffixes?: readonly string[];
}

/** A change that an upstream makes to a path before routing. */
export type PathStep =
  | 'encoded-slash'
  | 'params'
  | 'empty-segments'
  | 'prefix'
  | 'version'
  | 'format-suffix'
  /** Only one pair of type and id and the last pair count. */
  | 'last-pair';

/** One way in which some upstream may read a path. */
export interface PathInterpretation {
  readonly ids: readonly number[];
  /** The texts of the same segments: canonical, without the parts that a step has cut off. */
  readonly segments: readonly string[];
  /** The steps from the canonical path to this interpretation; empty: the path unchanged. */
  readonly steps: readonly PathStep[];
}

type SplitPath = Pick<CanonicalRequest, 'segments' | 'alternativeSegments'>;

/** A prefix that is stripped off a path: as ids, and its folded last segment. */
export interface Prefix {
  readonly ids: readonly number[];
  readonly lastText: string;
}

const asItStands: readonly PathStep[] = [];

/** The only generator of interpretations. All tables use it, so that all interpret a path alike. */
export class PathInterpreter {
  readonly #idOf: IdOf;
  readonly #versionSegments: boolean;
  readonly #prefixes: readonly Prefix[];
  readonly #suffixes: FormatSuffixes;
  /** A prefix of several segments begins with a known segment; a prefix of one segment may be glued to the next one. */
  readonly #gluable: readonly string[];
  /** Prefixes and versions that may be stripped one after the other: one for each hop before the shop. */
  readonly #maxStrips: number;

  /** `prefixes`: the prefixes of the rules, interned by the same ids. */
  constructor(rules: PathRules, idOf: IdOf, prefixes: readonly Prefix[]) {
    const { versionSegments = true, formatSuffixes } = rules;
    this.#idOf = idOf;
    this.#versionSegments = versionSegments;
    this.#prefixes = prefixes;
    this.#suffixes = foldSuffixes(formatSuffixes);
    this.#gluable = this.#prefixes.flatMap(({ ids, lastText }) => (ids.length === 1 ? [lastText] : []));
    this.#maxStrips = this.#prefixes.length + (versionSegments ? 1 : 0);
  }

  /**
   * Every interpretation, the unchanged path first. At most 21 ways with empty segments, times two for an encoded slash and
   * for a `;`, times one more for each prefix and for a version, times three for format suffixes.
   */
  interpret({ segments, alternativeSegments }: SplitPath): readonly PathInterpretation[] {
    const all = withEmptiesSeen(segments, this.#idOf, asItStands);
    if (alternativeSegments !== undefined) {
      const others = withEmptiesSeen(alternativeSegments, this.#idOf, ['encoded-slash']);
      for (const other of others) all.push(other);
    }
    return this.#withSuffixesCut(this.#withStripped(all));
  }

  /** Whether no interpretation contains a segment that some row names; then no interpretation need be made. */
  hasNoKnownSegment({ segments, alternativeSegments }: SplitPath): boolean {
    if (alternativeSegments !== undefined) return false;
    let mayBeGlued = true;
    for (const segment of segments) {
      if (this.#idOf(segment) !== unknownId) return false;
      // An empty segment, or one that folds to nothing, has an id: the line above found it.
      if (withoutFormatSuffix(segment, this.#suffixes) !== undefined) return false;
      if (mayBeGlued && this.#gluable.some((text) => textBehind(segment, text) !== undefined)) return false;
      // Before a glued prefix only versions are stripped; any other unknown segment rules it out.
      mayBeGlued &&= this.#versionSegments && isVersionSegment(segment);
    }
    return true;
  }

  #withStripped(all: PathInterpretation[]): PathInterpretation[] {
    let latest: readonly PathInterpretation[] = all;
    for (let strips = 0; strips < this.#maxStrips; strips += 1) {
      const stripped: PathInterpretation[] = [];
      for (const one of latest) {
        for (const prefix of this.#prefixes) {
          const rest = stripPrefix(one, prefix, this.#idOf);
          if (rest !== undefined) stripped.push(rest);
        }
        if (this.#versionSegments && isVersionSegment(one.segments[0])) {
          stripped.push(from(one, 1, 'version'));
        }
      }
      if (stripped.length === 0) break;
      latest = withoutTwins(stripped);
      for (const one of latest) all.push(one);
    }
    return all;
  }

  #withSuffixesCut(all: PathInterpretation[]): PathInterpretation[] {
    const { length } = all;
    for (let i = 0; i < length; i += 1) {
      const one = all[i] as PathInterpretation;
      for (const bare of withoutFormatSuffixes(one.segments.at(-1), this.#suffixes))
        all.push({
          ids: one.ids.with(-1, this.#idOf(bare)),
          segments: one.segments.with(-1, bare),
          steps: [...one.steps, 'format-suffix'],
        });
    }
    return all;
  }
}

/**
 * Tells whether a shop that strips prefixes and versions would route a request to `own`, a path of literals:
 * `/v0/url-resolver` is `/url-resolver`.
 */
export function createOwnPathTest(
  own: string,
  rules: PathRules,
): (request: SplitPath & Pick<CanonicalRequest, 'path'>) => boolean {
  const interner = createSegmentInterner();
  const prefixes = parsePrefixes(rules, interner);
  const idOf = openLiterals(interner.pack());
  const interpreter = new PathInterpreter({ ...rules, formatSuffixes: [] }, idOf, prefixes);
  const ending = own.slice(1);
  const endingWithSlash = `${ending}/`;
  const isStrip = (step: PathStep) => step === 'prefix' || step === 'version';
  return (request) => {
    if (!request.path.endsWith(ending) && !request.path.endsWith(endingWithSlash)) return false;
    const all = interpreter.interpret(request);
    return all.some(({ segments, steps }) => steps.some(isStrip) && segments.join('/') === ending);
  };
}

function withEmptiesSeen(
  segments: readonly string[],
  idOf: IdOf,
  steps: readonly PathStep[],
): PathInterpretation[] {
  const ids = segments.map(idOf);
  const all: PathInterpretation[] = [{ ids, segments, steps }];
  if (ids.includes(emptyId))
    for (const kept of waysWithEmpties(segments, ids))
      all.push({
        ids: kept.map((i) => ids[i] as number),
        segments: kept.map((i) => segments[i] as string),
        steps: [...steps, 'empty-segments'],
      });
  // Fastify 4 and restify end the path at a `;`, Apache behind the name of a script.
  for (const last of lastSegments) {
    const end = segments.findIndex((segment) => last.test(segment)) + 1;
    if (end === 0 || end === segments.length) continue;
    for (const one of withEmptiesSeen(segments.slice(0, end), idOf, [...steps, 'params'])) all.push(one);
  }
  return all;
}

/** `index.php` is a front controller: the path is behind its name. */
const lastSegments = [/;|%3B/, /\.(?:php|aspx|ashx|cgi|pl)$(?<!^index\.php)/i];

/**
 * Upstreams keep empty segments, drop all or only the first ones, or take a run of them for one; some read a `;param` as
 * an empty segment. (The shop trims both ends.) Each way is combined with three ends of the path: unchanged, without its
 * empty segments, and with one of them.
 */
function waysWithEmpties(segments: readonly string[], ids: readonly number[]): Iterable<number[]> {
  const isEmpty = (i: number) => ids[i] === emptyId;
  let end = ids.length;
  while (end > 0 && isEmpty(end - 1)) end -= 1;
  const kept = [...ids.keys()];
  let start = 0;
  while (start < end && isEmpty(start)) start += 1;
  const starts = start === 0 ? [0] : [0, start];
  const inners = starts.flatMap((begin) => {
    const inner = kept.slice(begin, end);
    return [
      inner,
      inner.filter((i) => segments[i] !== ''),
      inner.filter((i) => !(isEmpty(i) && isEmpty(i - 1))),
    ];
  });
  inners.push(kept.slice(0, end).filter((i) => !isEmpty(i)));
  const trailing = kept.slice(end);
  const ends = [[], trailing.slice(0, 1), trailing];
  const ways = new Map<string, number[]>();
  for (const seen of inners) {
    for (const last of ends) {
      const way = seen.concat(last);
      ways.set(way.join(), way);
    }
  }
  ways.delete(kept.join());
  return ways.values();
}

/** Symfony strips the script's name as text: the shop takes `/index.phpcarts/1` for `/carts/1`. */
function stripPrefix(one: PathInterpretation, prefix: Prefix, idOf: IdOf): PathInterpretation | undefined {
  const { ids, segments } = one;
  const last = prefix.ids.length - 1;
  for (let i = 0; i < last; i += 1) if (ids[i] !== prefix.ids[i]) return undefined;
  if (ids[last] === prefix.ids[last]) return from(one, last + 1, 'prefix');
  const glued = textBehind(segments[last], prefix.lastText);
  if (glued === undefined) return undefined;
  const rest = from(one, last, 'prefix');
  return { ...rest, ids: rest.ids.with(0, idOf(glued)), segments: rest.segments.with(0, glued) };
}

function from(
  { ids, segments, steps }: PathInterpretation,
  start: number,
  step: PathStep,
): PathInterpretation {
  return { ids: ids.slice(start), segments: segments.slice(start), steps: [...steps, step] };
}

function textBehind(segment: string | undefined, text: string): string | undefined {
  if (segment === undefined || segment.length <= text.length) return undefined;
  const loose = looseSegment(segment);
  return loose.startsWith(text) ? loose.slice(text.length) : undefined;
}

function withoutTwins(all: readonly PathInterpretation[]): PathInterpretation[] {
  const seen = new Map<string, PathInterpretation>();
  for (const one of all) {
    // No segment gives "", one empty segment gives "/".
    const path = ['', ...one.segments].join('/');
    if (!seen.has(path)) seen.set(path, one);
  }
  return [...seen.values()];
}

/** @throws {Error} if an ignored prefix is malformed. */
export function parsePrefixes({ ignoredPrefixes }: PathRules, interner: SegmentInterner): readonly Prefix[] {
  return ignoredPrefixes.map((prefix) => parsePrefix(prefix, interner));
}

function parsePrefix(text: string, interner: SegmentInterner): Prefix {
  const template = parsePathTemplate(text);
  if (isTemplateProblem(template)) throw new Error(`ignored prefix "${text}": ${template.problem}`);
  const literals = template.segments.map((segment) => ('literal' in segment ? segment.literal : ''));
  const last = literals.at(-1);
  if (template.rest || last === undefined || literals.includes('')) {
    throw new Error(`ignored prefix "${text}": one or more literals are needed, nothing else`);
  }
  return { ids: literals.map((literal) => interner.intern(literal)), lastText: foldSegment(last) };
}
