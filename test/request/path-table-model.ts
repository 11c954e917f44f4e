/**
 * The matching rules once more, as plainly as they can be said: no router, no words, no index, everything tried
 * against everything. Slow on purpose; the table must agree with it.
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

/** Indexes of the rows met. */
export function modelMatch(
  rows: readonly ModelRow[],
  prefixes: readonly string[],
  request: ModelRequest,
): number[] {
  const readings = [request.segments, request.alternativeSegments ?? []]
    .filter((segments) => segments.length > 0)
    .flatMap(emptyWays)
    .flatMap((reading) => stripped(reading, prefixes));
  return [...rows.keys()].filter((index) => {
    const row = rows[index] as ModelRow;
    return (
      asksFor(request, row.method) &&
      readings.some(
        (reading) =>
          isMet(row.template, reading) || pairs(reading).some((pair) => isWhole(row.template, pair)),
      )
    );
  });
}

function asksFor({ method, isFormPost }: ModelRequest, wanted: string): boolean {
  if (method === 'OPTIONS' || wanted === 'OPTIONS') return method === wanted;
  if (method === 'POST' && isFormPost) return true;
  return wanted === 'ANY' || wanted === method || (wanted === 'GET' && method === 'HEAD');
}

function fold(segment: string): string {
  return (
    plain(segment)
      .split(';')[0]
      ?.replace(/[. ]+$/, '') ?? ''
  );
}

/** Letters that are the same but for their case, to somebody. */
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

/** The reading, and what is left when up to as many prefixes as there are have been taken off it. */
function stripped(reading: string[], prefixes: readonly string[], strips = prefixes.length): string[][] {
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
  return [reading, ...rests.flatMap((rest) => stripped(rest, prefixes, strips - 1))];
}

/** `/type/id` of each pair, followed by the last pair. */
function pairs(reading: readonly string[]): string[][] {
  const all: string[][] = [];
  for (let i = 0; i < reading.length; i += 2) all.push(reading.slice(i, i + 2));
  const last = all.pop();
  return last === undefined ? [] : all.map((pair) => [...pair, ...last]);
}

function isMet(template: string, reading: readonly string[]): boolean {
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
  return parts.length > 1 || start % 2 === 0;
}

function isWhole(template: string, reading: readonly string[]): boolean {
  const parts = template.slice(1).split('/');
  const head = parts.filter((part) => part !== '**');
  return isHere(head, parts.length > head.length ? reading.slice(0, head.length) : reading);
}

function isHere(parts: readonly string[], segments: readonly string[]): boolean {
  if (parts.length !== segments.length) return false;
  return parts.every((part, i) => part.startsWith('{') || fold(part) === fold(segments[i] as string));
}
