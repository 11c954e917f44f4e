import { contractRows } from '../../end-to-end/demo/contract-calls.ts';

/** A request as a server understood it. */
export interface Understood {
  readonly method: string;
  /** The path in every form that a program behind the server can get. */
  readonly paths: readonly string[];
  /** The request line, for the message of a failed test. */
  readonly line: string;
}

/** Types of the parents and of the resource, and whether an id follows. */
interface ShopRoute {
  readonly method: string;
  readonly parents: readonly string[];
  readonly type: string;
  readonly hasId: boolean;
}

const routes: readonly ShopRoute[] = contractRows.map(({ method, template }) => {
  const segments = template.slice(1).split('/');
  const types = segments.filter((_, i) => i % 2 === 0);
  const type = types.pop() ?? '';
  return { method, parents: types, type, hasId: segments.length % 2 === 0 };
});

/**
 * Whether a shop behind that server would serve a protected resource. Applies the shop's rule (pairs of type and id; the
 * last pair is the resource, its parents are any pairs before it) to every form of the path: decoded up to twice, in lower
 * case, without `;params`, with dots resolved. Shares no code with shopward.
 */
export function isProtectedToShop({ method, paths }: Understood): boolean {
  const asked = method === 'HEAD' ? 'GET' : method;
  return formsOf(paths).some((path) => {
    const segments = path.replace(/^[/\\]+|[/\\]+$/g, '').split('/');
    const pairs = segments.flatMap((type, i) => (i % 2 === 0 ? [{ type, id: segments[i + 1] }] : []));
    const last = pairs.pop();
    const before = new Set(pairs.map(({ type }) => type));
    return routes.some(
      ({ method, parents, type, hasId }) =>
        method === asked &&
        type === last?.type &&
        hasId === (last.id !== undefined) &&
        parents.every((parent) => before.has(parent)),
    );
  });
}

function formsOf(paths: readonly string[]): string[] {
  const decoded = closure(paths, 2, (path) => [decode(path)]);
  const all = closure(decoded, 3, (path) => [
    path.replace(/;[^/]*/g, ''),
    path.replace(/^\/+index\.php(?=\/|$)/i, ''),
    path.toLowerCase(),
    path.replaceAll('\\', '/'),
    resolveDots(path),
  ]);
  return [...all];
}

function closure(start: Iterable<string>, rounds: number, step: (path: string) => string[]): Set<string> {
  const all = new Set(start);
  for (let i = 0; i < rounds; i += 1)
    for (const path of [...all]) for (const next of step(path)) all.add(next);
  return all;
}

/** Decodes as a tolerant server does: invalid escapes stay. */
function decode(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}

function resolveDots(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return kept.join('/');
}
