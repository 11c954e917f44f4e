import { randomUUID } from 'node:crypto';
import { type Refusal, refuse } from './refusals.ts';
import {
  type Action,
  type Answer,
  type AttributeRules,
  answerOne,
  noContent,
  optional,
  type Relations,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  type Rule,
  type ShopMethod,
} from './resource.ts';

export type Row = { readonly id: string; readonly owner?: string };

/** One attribute: what POST and PATCH may set it to (neither by default), and whether answers show it. */
type Field = { readonly POST?: Rule; readonly PATCH?: Rule; readonly isHidden?: true };

/** Shown, and set by the shop alone. */
export const shown: Field = {};

/** POST must name it, PATCH may. */
export function required(rule: Rule): Field {
  return { POST: rule, PATCH: optional(rule) };
}

/** POST and PATCH may name it. */
export function settable(rule: Rule): Field {
  return { POST: optional(rule), PATCH: optional(rule) };
}

/** POST names it for good. */
export function fixed(rule: Rule): Field {
  return { POST: rule };
}

/** What only the making of a row needs to know; it is neither kept nor shown. */
export function hidden(rule: Rule): Field {
  return { POST: rule, isHidden: true };
}

/** A resource as a table: where its rows are, who sees them, which fields they have and what is done with them. */
export type Table<T extends Row, P = undefined> = {
  readonly type: string;
  readonly parent?: string;
  /** The row that the parent's pair in the path names; refuses one that the caller may not use so. */
  readonly parentOf?: (call: ResourceCall, id: string | undefined) => P;
  readonly methods: readonly ShopMethod[];
  /** Where rows are kept: new ones are put there, removed ones taken out. */
  readonly rows: (call: ResourceCall, parent: P) => readonly T[];
  /** Default: a row with an owner is its owner's, any other everybody's. */
  readonly sees?: (call: ResourceCall, row: T) => boolean;
  /** Refuses an id that none of these rows has. */
  readonly missing?: Refusal;
  /** Refuses what the caller sees and may not do; comes before anything is changed. */
  readonly check?: (call: ResourceCall, row: T, method: ShopMethod) => void;
  readonly fields: Readonly<Record<string, Field>>;
  /** Attributes that are computed. */
  readonly computed?: (call: ResourceCall, row: T, parent: P) => object;
  /** What only the answer about a single row shows. */
  readonly details?: (row: T) => object;
  readonly related?: (call: ResourceCall, row: T) => Relations;
  /** Default: the row. A change of what is in a cart answers with the cart. */
  readonly show?: (call: ResourceCall, row: T, parent: P) => Resource;
  /** Makes the row that POST fills in, or gives the one that it changes. */
  readonly make?: (call: ResourceCall, id: string, parent: P) => T;
  /** What else a change or a removal entails. */
  readonly after?: (call: ResourceCall, row: T, parent: P) => void;
  /** Rows that the pseudo id `mine` stands for; without it `mine` is an id like any other. */
  readonly mine?: (call: ResourceCall, row: T) => boolean;
  /** PATCH and DELETE may name their rows in the body. */
  readonly idInBody?: true;
  /** Status of POST, default 201. */
  readonly created?: number;
};

/** The route of a table. */
export function tableRoute<T extends Row, P = undefined>(table: Table<T, P>): ResourceRoute {
  const { type, parent, idInBody } = table;
  const attributes = { POST: rulesOf(table, 'POST'), PATCH: rulesOf(table, 'PATCH') };
  const actions: Record<ShopMethod, Action> = {
    GET: { handle: (call) => read(table, call, ownerOf(table, call)) },
    POST: { attributes: attributes.POST, handle: (call) => create(table, call, ownerOf(table, call)) },
    PATCH: { attributes: attributes.PATCH, idInBody, handle: (call) => change(table, call) },
    DELETE: { idInBody, handle: (call) => remove(table, call, ownerOf(table, call)) },
  };
  const methods = Object.fromEntries(table.methods.map((method) => [method, actions[method]]));
  return { type, parent, methods };
}

/** The route of what is only read, and is no row of a table. */
export function reading(
  type: string,
  show: (call: ResourceCall) => Resource | readonly Resource[],
  parent?: string,
): ResourceRoute {
  return { type, parent, methods: { GET: { handle: (call) => ({ status: 200, data: show(call) }) } } };
}

function ownerOf<T extends Row, P>({ parent, parentOf }: Table<T, P>, call: ResourceCall): P {
  return parentOf?.(call, call.parents.get(parent ?? '')) as P;
}

function rulesOf({ fields }: Pick<Table<Row>, 'fields'>, method: 'POST' | 'PATCH'): AttributeRules {
  const rules = Object.entries(fields).map(([name, field]) => [name, field[method]] as const);
  return Object.fromEntries(rules.filter((each): each is [string, Rule] => each[1] !== undefined));
}

function read<T extends Row, P>(table: Table<T, P>, call: ResourceCall, owner: P): Answer {
  const { mine, details } = table;
  if (call.id && !(call.id === 'mine' && mine !== undefined)) {
    const row = find(table, call, owner, call.id);
    const single = show(table, call, row, owner);
    return answerOne({ ...single, attributes: { ...single.attributes, ...details?.(row) } });
  }
  const rows = visible(table, call, owner).filter((row) => !call.id || mine?.(call, row));
  return { status: 200, data: rows.map((row) => show(table, call, row, owner)) };
}

function create<T extends Row, P>(table: Table<T, P>, call: ResourceCall, owner: P): Answer {
  const row = table.make?.(call, randomUUID(), owner) ?? refuse('notFound');
  table.check?.(call, row, 'POST');
  assign(table, call, row, 'POST');
  const rows = table.rows(call, owner) as T[];
  if (!rows.includes(row)) rows.push(row);
  table.after?.(call, row, owner);
  return answerOne(show(table, call, row, owner), table.created ?? 201);
}

function change<T extends Row, P>(table: Table<T, P>, call: ResourceCall): Answer {
  const owner = ownerOf(table, call);
  const row = find(table, call, owner, namedIds(call)[0] ?? '');
  table.check?.(call, row, 'PATCH');
  assign(table, call, row, 'PATCH');
  table.after?.(call, row, owner);
  return answerOne(show(table, call, row, owner));
}

function remove<T extends Row, P>(table: Table<T, P>, call: ResourceCall, owner: P): Answer {
  const rows = table.rows(call, owner) as T[];
  for (const row of namedIds(call).map((id) => find(table, call, owner, id))) {
    table.check?.(call, row, 'DELETE');
    rows.splice(rows.indexOf(row), 1);
    table.after?.(call, row, owner);
  }
  return noContent;
}

function assign<T extends Row, P>(
  { fields }: Table<T, P>,
  { attributes }: ResourceCall,
  row: T,
  method: 'POST' | 'PATCH',
): void {
  const named = Object.entries(fields).filter(([name, field]) => {
    return field[method] !== undefined && !field.isHidden && attributes[name] !== undefined;
  });
  Object.assign(row, Object.fromEntries(named.map(([name]) => [name, attributes[name]])));
}

function visible<T extends Row, P>({ rows, sees }: Table<T, P>, call: ResourceCall, owner: P): readonly T[] {
  const isVisible = sees ?? ((_, row) => row.owner === undefined || row.owner === call.owner);
  return rows(call, owner).filter((row) => isVisible(call, row));
}

/** A row that the caller sees. */
export function find<T extends Row, P>(table: Table<T, P>, call: ResourceCall, owner: P, id: string): T {
  const found = visible(table, call, owner).find((row) => row.id === id);
  return found ?? refuse(table.missing ?? 'notFound');
}

function show<T extends Row, P>(table: Table<T, P>, call: ResourceCall, row: T, owner: P): Resource {
  return table.show?.(call, row, owner) ?? showRow(table, call, row, owner);
}

/** A row as a resource; one that lies under a row of another table says so in its link. */
export function showRow<T extends Row, P>(
  { type, parent, fields, computed, related }: Table<T, P>,
  call: ResourceCall,
  row: T,
  owner: P,
): Resource {
  const named = Object.entries(row).filter(([name]) => {
    return Object.hasOwn(fields, name) && fields[name]?.isHidden !== true;
  });
  const attributes = { ...Object.fromEntries(named), ...computed?.(call, row, owner) };
  const above = owner as Row | undefined;
  const self = above === undefined ? `/${type}/${row.id}` : `/${parent}/${above.id}/${type}/${row.id}`;
  return { type, id: row.id, self, attributes, related: related?.(call, row) ?? {} };
}

function namedIds({ id, bodyIds }: ResourceCall): readonly string[] {
  const ids = id ? [id] : bodyIds;
  return ids.length > 0 ? ids : refuse('idMissing');
}
