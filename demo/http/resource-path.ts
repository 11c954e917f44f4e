/** One step of a path: `/carts/ID` is the pair (carts, ID). `null`: no id was given; an empty string: an empty one. */
export type ResourcePair = { readonly type: string; readonly id: string | null };

/**
 * Reads a request target as a real shop does, aliases included: any run of slashes and backslashes at both ends is
 * ignored, `//` inside is an empty id, nothing is percent-decoded, dot segments stay, `/index.php` is skipped.
 */
export function readPath(target: string): { pairs: ResourcePair[]; query: string; path: string } {
  const pathAndQuery = stripAuthority(target).split('#', 1)[0] ?? '';
  const mark = pathAndQuery.indexOf('?');
  const path = mark < 0 ? pathAndQuery : pathAndQuery.slice(0, mark);
  const query = mark < 0 ? '' : pathAndQuery.slice(mark + 1);
  const inner = path.replace(/^\/index\.php(?=\/|$)/, '').replace(/^[/\\]+|[/\\]+$/g, '');
  return { pairs: inner === '' ? [] : readPairs(inner.split('/')), query, path };
}

function stripAuthority(target: string): string {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target);
  return absolute === null ? target : target.slice(absolute[0].length) || '/';
}

function readPairs(segments: readonly string[]): ResourcePair[] {
  const pairs: ResourcePair[] = [];
  for (let at = 0; at < segments.length; at += 2) {
    pairs.push({ type: segments[at] ?? '', id: segments[at + 1] ?? null });
  }
  return pairs;
}
