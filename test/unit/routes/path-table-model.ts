/**
 * The matching rules again, as simply as possible: no router, no words, no index; every row is compared with every
 * reading. Slow; the table must agree with it.
 */
export interface ModelRow {
  readonly method: string;
  readonly template: string;
}

interface ModelRequest {
  readonly method: string;
  readonly segments: readonly string[];
  readonly alternativeSegments?: readonly string[] | undefined;
  readonly isFormPost: boolean;
}

export interface ModelRules {
  readonly ignoredPrefixes: readonly string[];
  readonly versionSegments: boolean;
  readonly itemForms: boolean;
  readonly lastPair: boolean;
  readonly formatSuffixes: readonly string[];
}

/** Indexes of the matching rows. */
export function modelMatch(
  rows: readonly ModelRow[],
  { ignoredPrefixes, versionSegments, itemForms, lastPair, formatSuffixes }: ModelRules,
  request: ModelRequest,
): number[] {
  const strips = ignoredPrefixes.length + (versionSegments ? 1 : 0);
  const readings = [request.segments, request.alternativeSegments ?? []]
    .filter((segments) => segments.length > 0)
    .flatMap((segments) => [segments, upTo(/;|%3b/i, segments), upTo(/(?<!^index)\.php$/i, segments)])
    .flatMap((segments) => [segments, upTo(/;|%3b/i, segments)])
    .flatMap((segments) => unlike(emptyWays(segments)))
    .flatMap((reading) => stripped(reading, ignoredPrefixes, versionSegments, strips))
    .flatMap((reading) => withSuffixCut(reading, formatSuffixes));
  const isMetAs = (template: string, isType: boolean) =>
    readings.some((reading) =>
      lastPair
        ? isMet(template, reading, isType) || pairs(reading).some((pair) => isWhole(template, pair))
        : isWhole(template, reading),
    );
  const isWritten = (template: string, method: string) =>
    rows.some(
      (row) => shape(row.template) === shape(template) && (row.method === method || row.method === 'ANY'),
    );
  return [...rows.keys()].filter((index) => {
    const { method, template } = rows[index] as ModelRow;
    if (!asksFor(request, method)) return false;
    if (isMetAs(template, partsOf(template).length === 1)) return true;
    return formsOf(template, versionSegments, itemForms).some(
      ([form, isType]) => !isWritten(form, method) && isMetAs(form, isType),
    );
  });
}

/** Other paths that a row covers, and whether each is only a type, with or without an id. */
function formsOf(template: string, versions: boolean, items: boolean): [string, boolean][] {
  const parts = partsOf(template);
  const bare = parts.slice(1);
  const forms: [string, boolean][] = [];
  const isBare = versions && isVersion(parts[0] ?? '') && bare.some((part) => !/^\{|^\*\*$/.test(part));
  if (isBare) forms.push([`/${bare.join('/')}`, bare.length === 1]);
  for (const path of items ? [parts, ...(isBare ? [bare] : [])] : []) {
    if (path.length > 0 && !/^\{|^\*\*$/.test(path.at(-1) ?? '')) {
      forms.push([`/${path.join('/')}/{item}`, path.length === 1]);
    }
  }
  return forms;
}

function partsOf(template: string): string[] {
  return template === '/' ? [] : template.slice(1).split('/');
}

function shape(template: string): string {
  return partsOf(template)
    .map((part) => (part.startsWith('{') ? '{}' : fold(part)))
    .join('/');
}

function isVersion(segment: string): boolean {
  return !segment.startsWith('{') && /^[a-z]*[0-9]+([.][0-9]+)*$/.test(fold(segment));
}

/** Up to the first such segment, or all. */
function upTo(last: RegExp, segments: readonly string[]): readonly string[] {
  return segments.slice(0, segments.findIndex((segment) => last.test(segment)) + 1 || segments.length);
}

function withSuffixCut(reading: string[], suffixes: readonly string[], most = 2): string[][] {
  const last = fold(reading.at(-1) ?? '');
  const cut = suffixes.filter((suffix) => last.endsWith(`.${suffix}`) && last.length > suffix.length + 1);
  const rests = most === 0 ? [] : cut.map((suffix) => encodeURIComponent(last.slice(0, -suffix.length - 1)));
  return [
    reading,
    ...rests.flatMap((rest) => withSuffixCut([...reading.slice(0, -1), rest], suffixes, most - 1)),
  ];
}

function asksFor({ method, isFormPost }: ModelRequest, wanted: string): boolean {
  if (method === 'OPTIONS' || wanted === 'OPTIONS') return method === wanted;
  if (isFormPost) return true;
  return wanted === 'ANY' || wanted === method || (wanted === 'GET' && method === 'HEAD');
}

/** Cache: a run folds the same few segments again and again. */
const folds = new Map<string, string>();

function fold(segment: string): string {
  const known = folds.get(segment);
  if (known !== undefined) return known;
  const folded = plain(segment)
    .replace(/;.*/s, '')
    .replace(/[. ]+$/, '');
  folds.set(segment, folded);
  return folded;
}

/** Letters that some server treats as equal apart from their case. */
const alike: readonly (readonly [RegExp, string])[] = [
  [/\u017f/g, 's'],
  [/[\u0130\u0131]/g, 'i'],
  [/\uff43/g, 'c'],
];

function plain(segment: string): string {
  const text = decodeURIComponent(segment);
  return alike.reduce((now, [letter, is]) => now.replace(letter, is), text).toLowerCase();
}

function emptyWays(segments: readonly string[]): string[][] {
  const isEmpty = (segment: string | undefined) => segment !== undefined && fold(segment) === '';
  const inner = [...segments];
  const tail: string[] = [];
  while (inner.length > 0 && isEmpty(inner.at(-1))) tail.push(inner.pop() as string);
  const begun = inner.slice(inner.findIndex((segment) => !isEmpty(segment)));
  const inners = [inner, begun].flatMap((some) => [
    some,
    some.filter((segment) => segment !== ''),
    some.filter((segment) => !isEmpty(segment)),
    some.filter((segment, i) => !isEmpty(segment) || !isEmpty(some[i - 1])),
  ]);
  const tails = [[], tail, ...(tail.length > 0 ? [['']] : [])];
  return inners.flatMap((one) => tails.map((other) => [...one, ...other]));
}

/** Removes duplicates. */
function unlike(readings: readonly string[][]): string[][] {
  return [...new Map(readings.map((reading) => [JSON.stringify(reading), reading])).values()];
}

/** The reading, and what remains of it after each removal of up to `strips` prefixes and versions. */
function stripped(
  reading: string[],
  prefixes: readonly string[],
  versions: boolean,
  strips: number,
): string[][] {
  if (strips === 0) return [reading];
  const rests = prefixes.flatMap((prefix) => {
    const parts = prefix.slice(1).split('/');
    const last = parts.pop() as string;
    if (!parts.every((part, i) => fold(reading[i] ?? '/') === part)) return [];
    const segment = reading[parts.length];
    if (segment === undefined) return [];
    if (fold(segment) === last) return [reading.slice(parts.length + 1)];
    const loose = plain(segment);
    if (!loose.startsWith(last)) return [];
    return [[encodeURIComponent(loose.slice(last.length)), ...reading.slice(parts.length + 1)]];
  });
  if (versions && isVersion(reading[0] ?? '')) rests.push(reading.slice(1));
  return [reading, ...rests.flatMap((rest) => stripped(rest, prefixes, versions, strips - 1))];
}

/** `/type/id` of each pair, followed by the last pair. */
function pairs(reading: readonly string[]): string[][] {
  const all: string[][] = [];
  for (let i = 0; i < reading.length; i += 2) all.push(reading.slice(i, i + 2));
  const last = all.pop();
  return last === undefined ? [] : all.map((pair) => [...pair, ...last]);
}

/** `isType`: a resource type, with or without an id, matches only at the position of a type. */
function isMet(template: string, reading: readonly string[], isType: boolean): boolean {
  const parts = template === '/' ? [] : template.slice(1).split('/');
  if (parts.at(-1) === '**') {
    const head = parts.slice(0, -1);
    if (head.length === 0) return true;
    return reading.some((_, start) => {
      if (!isHere(head, reading.slice(start, start + head.length))) return false;
      return head.length > 1 || start + 1 < reading.length || start % 2 === 0;
    });
  }
  const start = reading.length - parts.length;
  if (start < 0 || !isHere(parts, reading.slice(start))) return false;
  if (parts.length === 0) return reading.length === 0;
  return !isType || start % 2 === 0;
}

function isWhole(template: string, reading: readonly string[]): boolean {
  const parts = partsOf(template);
  const head = parts.filter((part) => part !== '**');
  return isHere(head, parts.length > head.length ? reading.slice(0, head.length) : reading);
}

function isHere(parts: readonly string[], segments: readonly string[]): boolean {
  if (parts.length !== segments.length) return false;
  return parts.every((part, i) => part.startsWith('{') || fold(part) === fold(segments[i] as string));
}
