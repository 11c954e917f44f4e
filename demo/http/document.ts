import type { Resource, ResourceCall } from './call.ts';

type Linked = { readonly type: string; readonly id: string | null };
type Element = Linked & {
  attributes: object | null;
  links: { self: string };
  relationships?: Record<string, { data: Linked[] }>;
};

export type DocumentRequest = {
  readonly call: ResourceCall;
  /** `/` and the path's segments, without empty ends. */
  readonly path: string;
};

/** A JSON:API document: `include` adds relationships, `fields[type]` thins attributes out; neither by default. */
export function writeDocument(data: Resource | readonly Resource[], request: DocumentRequest): object {
  const writer = createWriter(request.call);
  const list = isList(data) ? data : [data];
  const elements = list.map((resource) => writer.write(resource));
  const included = writer.included();
  const rest = included.length > 0 ? { included } : {};
  if (!isList(data)) return { data: elements[0], ...rest };
  return {
    data: elements,
    links: { self: request.call.settings.domain + request.path + selfQuery(request.call) },
    ...rest,
  };
}

/** Decoded on purpose, as a real shop writes it: `%26` comes back as `&`. */
export function selfQuery(call: ResourceCall): string {
  const pairs = [...call.query.values].map(([name, value]) => `${name}=${value}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

function createWriter(call: ResourceCall) {
  const names = (call.query.values.get('include') ?? '').split(',').filter((name) => name !== '');
  const seen = new Map<string, Element>();

  function write(resource: Resource): Element {
    const self =
      resource.self ?? (resource.id === null ? `/${resource.type}` : `/${resource.type}/${resource.id}`);
    const { type, id } = resource;
    const element: Element = {
      type,
      id,
      attributes: thinOut(resource),
      links: { self: call.settings.domain + self },
    };
    for (const name of names) relate(element, resource, name);
    return element;
  }

  function relate(element: Element, resource: Resource, name: string): void {
    const known = resource.related ?? {};
    const found = Object.hasOwn(known, name) ? (known[name]?.() ?? []) : [];
    if (found.length === 0) return;
    element.relationships ??= {};
    element.relationships[name] = { data: found.map(({ type, id }) => ({ type, id })) };
    for (const related of found) {
      const key = `${related.type}/${related.id}`;
      if (seen.has(key)) continue;
      seen.set(key, { type: related.type, id: related.id, attributes: null, links: { self: '' } });
      seen.set(key, write(related));
    }
  }

  function thinOut({ type, attributes }: Resource): object | null {
    const wanted = call.fieldsOf(type);
    if (wanted === undefined || attributes === null) return attributes;
    return Object.fromEntries(Object.entries(attributes).filter(([name]) => wanted.has(name)));
  }

  return { write, included: () => [...seen.values()] };
}

function isList(data: Resource | readonly Resource[]): data is readonly Resource[] {
  return Array.isArray(data);
}
