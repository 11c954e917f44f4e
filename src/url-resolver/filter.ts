import { createOwnPathTest } from '../http/path-interpretations.ts';
import type { PathRules } from '../http/path-table.ts';
import type { Matcher } from '../proxy/filter.ts';

export type ResolverMatcher = Matcher<true>;

/** GET and HEAD of the resolver's path, in every spelling that the shop routes to it. */
export function createResolverMatcher(path: string, paths: PathRules): ResolverMatcher {
  const pathWithSlash = `${path}/`;
  const isOtherSpelling = createOwnPathTest(path, paths);
  return {
    name: 'url-resolver',
    route: path,
    match(request) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
      const isPlain = request.path === path || request.path === pathWithSlash;
      return isPlain || isOtherSpelling(request) || undefined;
    },
    describe: () => ({
      text: 'by the URL resolver, from its mapping; needs no token (an answer of another form is forwarded, under the list)',
    }),
  };
}
