import { findRoute } from '../../demo/http/dispatch.ts';
import { readPath } from '../../demo/http/request.ts';
import { contractCalls } from './demo/contract-calls.ts';

/** Rows without the names of their parameters, such as `PATCH /carts/{id}`. */
export function shapeOf(row: string): string {
  return row.replace(/\{\w+\}/g, '{id}');
}

const contractShapes = new Set(contractCalls.map(({ row }) => shapeOf(row)));

/** The protected rows that the demo shop acts on for this target, if it reads it undecoded, decoded once, or twice. */
export function contractRowsMet(method: string, target: string, isForm: boolean): ReadonlySet<string> {
  const met = new Set<string>();
  const methods =
    method === 'HEAD' ? ['GET'] : method === 'POST' && isForm ? ['GET', 'POST', 'PATCH', 'DELETE'] : [method];
  for (const reading of [target, decode(target), decode(decode(target))]) {
    const { pairs } = readPath(reading);
    for (const each of methods) {
      const template = findRoute(each, pairs)?.template;
      if (template !== undefined && contractShapes.has(template)) met.add(template);
    }
  }
  return met;
}

/** Decodes the path, not the query, and keeps invalid escapes, as a tolerant server does. */
function decode(target: string): string {
  const [path = '', ...query] = target.split('?');
  const decoded = path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
  return [decoded, ...query].join('?');
}
