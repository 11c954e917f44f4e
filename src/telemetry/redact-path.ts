/** A canonical path as it may be logged. */
export type RedactPath = (segments: readonly string[]) => string;

/** Longest path segment that is logged; tokens are longer, ids of a shop are not. */
const longestSegment = 80;
const cut = '/…';

/**
 * Cuts segments that may hold a secret out of paths: over-long ones, and all those behind one of `words`, which stand
 * before a token's id, however it is spelled or what stands between (`/REFRESH-TOKENS;x//ID`, `/index.phprefresh-tokens/ID`).
 */
export function createRedactPath(words: readonly string[]): RedactPath {
  const lowered = words.map((word) => word.toLowerCase());
  const announcesSecret = (segment: string) => {
    const text = segment.toLowerCase();
    return lowered.some((word) => text.includes(word));
  };
  return (segments) => {
    let path = '';
    let isBehind = false;
    for (const segment of segments) {
      const announces = announcesSecret(segment);
      // Behind an encoded slash the id is in the same segment.
      const isSecret =
        (isBehind && segment !== '' && segment !== 'mine') || (announces && segment.includes('%2F'));
      path += isSecret || segment.length > longestSegment ? cut : `/${segment}`;
      isBehind ||= announces;
    }
    return path;
  };
}

/** The words before the ids of tokens: the shop's own, and those of configured endpoints that name a token. */
export function tokenWords(templates: readonly string[]): string[] {
  const words = templates.flatMap((template) => /\/([^/{}]+)\/\{[^/]*\}$/.exec(template)?.[1] ?? []);
  return [...new Set(['refresh-tokens', ...words])];
}
