import type { CanonicalRequest } from './canonical-request.ts';
import { decodeSegment, emptyWord, foldCase, otherWord, type Vocabulary } from './path-folding.ts';

/** One way in which some upstream may read a path: which of its segments it sees. */
export interface PathReading {
  /** The word of each segment that is seen. */
  readonly words: readonly string[];
  /** For each word the index of its segment; undefined: the segments as they stand. */
  readonly origins: readonly number[] | undefined;
  /** The canonical segments, or those with encoded slashes taken for slashes. */
  readonly segments: readonly string[];
  /** The canonical path as it stands. */
  readonly isPlain: boolean;
}

/** A prefix that the shop strips, such as `/index.php`, as words and as its folded last segment. */
export interface IgnoredPrefix {
  readonly words: readonly string[];
  readonly lastText: string;
}

/**
 * Every reading of a path, the plain one first. At most 21 ways with empty segments, times two where an encoded slash
 * may stand, times one more for each prefix that is stripped.
 */
export function readPath(
  { segments, alternativeSegments }: Pick<CanonicalRequest, 'segments' | 'alternativeSegments'>,
  vocabulary: Vocabulary,
  prefixes: readonly IgnoredPrefix[],
): readonly PathReading[] {
  const readings = readEmpties(segments, vocabulary, true);
  if (alternativeSegments !== undefined)
    readings.push(...readEmpties(alternativeSegments, vocabulary, false));
  return prefixes.length === 0 ? readings : withPrefixesStripped(readings, vocabulary, prefixes);
}

/** Whether no reading of a path has a word of any row: then nothing need be read. */
export function isForeign(
  { segments, alternativeSegments }: Pick<CanonicalRequest, 'segments' | 'alternativeSegments'>,
  vocabulary: Vocabulary,
  prefixes: readonly IgnoredPrefix[],
): boolean {
  if (alternativeSegments !== undefined) return false;
  for (const segment of segments) if (vocabulary.wordOf(segment) !== otherWord) return false;
  // A prefix of several segments begins with a word; one of a single segment may be glued to the next.
  for (const { words, lastText } of prefixes) {
    if (words.length === 1 && textAfter(segments[0], lastText) !== undefined) return false;
  }
  return true;
}

function readEmpties(segments: readonly string[], vocabulary: Vocabulary, isPlain: boolean): PathReading[] {
  const words: string[] = [];
  let hasEmpty = false;
  for (const segment of segments) {
    const word = vocabulary.wordOf(segment);
    if (word === emptyWord) hasEmpty = true;
    words.push(word);
  }
  const asItStands: PathReading = { words, origins: undefined, segments, isPlain };
  if (!hasEmpty) return [asItStands];
  const ways = waysWithEmpties(segments, words);
  return [asItStands, ...ways.map((origins) => readingOf(origins, words, segments))];
}

function readingOf(origins: number[], words: readonly string[], segments: readonly string[]): PathReading {
  return { words: origins.map((i) => words[i] as string), origins, segments, isPlain: false };
}

/**
 * Upstreams keep empty segments, drop them, or take a run of them for one; some see an empty segment where a `;param`
 * was, and drop those at the beginning only (the shop trims both ends). Each way is taken with the end of the path seen
 * as it is, without its empty segments, and with one of them.
 */
function waysWithEmpties(segments: readonly string[], words: readonly string[]): number[][] {
  const isEmpty = (i: number) => words[i] === emptyWord;
  let end = words.length;
  while (end > 0 && isEmpty(end - 1)) end -= 1;
  const kept = [...words.keys()];
  let start = 0;
  while (start < end && isEmpty(start)) start += 1;
  const starts = start === 0 ? [0] : [0, start];
  const inners = starts.flatMap((from) => {
    const inner = kept.slice(from, end);
    return [
      inner,
      inner.filter((i) => segments[i] !== ''),
      inner.filter((i) => !(isEmpty(i) && isEmpty(i - 1))),
    ];
  });
  inners.push(kept.slice(0, end).filter((i) => !isEmpty(i)));
  const trailing = kept.slice(end);
  const ends = trailing.length > 1 ? [[], trailing.slice(0, 1), trailing] : [[], trailing];
  const ways = new Map<string, number[]>();
  for (const seen of inners) for (const last of ends) ways.set([...seen, ...last].join(), [...seen, ...last]);
  ways.delete(kept.join());
  return [...ways.values()];
}

/** As many strips one after the other as there are prefixes: one for each hop in front of the shop. */
function withPrefixesStripped(
  readings: readonly PathReading[],
  vocabulary: Vocabulary,
  prefixes: readonly IgnoredPrefix[],
): readonly PathReading[] {
  let all: PathReading[] | undefined;
  let latest = readings;
  for (let strips = 0; strips < prefixes.length; strips += 1) {
    const stripped: PathReading[] = [];
    for (const reading of latest) {
      for (const prefix of prefixes) {
        const rest = strip(reading, prefix, vocabulary);
        if (rest !== undefined) stripped.push(rest);
      }
    }
    if (stripped.length === 0) break;
    latest = withoutTwins(stripped);
    all = [...(all ?? readings), ...latest];
  }
  return all ?? readings;
}

/** Symfony strips the script's name as text, so that `/index.phpcarts/1` is `/carts/1` to the shop. */
function strip(reading: PathReading, prefix: IgnoredPrefix, vocabulary: Vocabulary): PathReading | undefined {
  const { words, origins, segments } = reading;
  const last = prefix.words.length - 1;
  for (let i = 0; i < last; i += 1) if (words[i] !== prefix.words[i]) return undefined;
  const isWhole = words[last] === prefix.words[last];
  const glued = isWhole ? undefined : textAfter(segments[origins?.[last] ?? last], prefix.lastText);
  if (!isWhole && glued === undefined) return undefined;
  const from = isWhole ? last + 1 : last;
  const rest = words.slice(from);
  if (glued !== undefined) rest[0] = vocabulary.wordOf(glued);
  return {
    words: rest,
    origins: rest.map((_, i) => origins?.[from + i] ?? from + i),
    segments,
    isPlain: false,
  };
}

function textAfter(segment: string | undefined, text: string): string | undefined {
  if (segment === undefined || segment.length <= text.length) return undefined;
  const loose = foldCase(decodeSegment(segment));
  return loose.startsWith(text) ? loose.slice(text.length) : undefined;
}

function withoutTwins(readings: readonly PathReading[]): PathReading[] {
  const seen = new Map<string, PathReading>();
  for (const reading of readings) {
    const key = reading.words.join('/');
    if (!seen.has(key)) seen.set(key, reading);
  }
  return [...seen.values()];
}
