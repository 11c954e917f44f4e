import { randomUUID } from 'node:crypto';
import { type Refusal, refuse } from './refusals.ts';
import type { Answer, Relations, Resource, ResourceCall, ResourceRoute, ShopMethod } from './resource.ts';
import { noContent } from './resource.ts';
import { optional, type Rule } from './rules.ts';

export type Row = { readonly id: string; readonly owner?: string };

/** One attribute: what POST and PATCH may set it to (neither by default), and how. */
type Field = Partial<Record<ShopMethod, Rule>> & {
  /** Only the making of a row needs it; it is neither kept nor shown. */
  readonly isHidden?: true;
  /** POST adds it to what the row has. */
  readonly isAdded?: true;
};

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

export function hidden(rule: Rule): Field {
  return { POST: rule, isHidden: true };
}

/** Several attributes of one kind. */
export function each(field: Field, ...names: readonly string[]): Readonly<Record<string, Field>> {
  return Object.fromEntries(names.map((name) => [name, field]));
}

/** A resource as a table: where its rows are, who sees them, which fields they have and what is done with them. */
export type Columns<T extends Row, P = undefined> = {
  readonly type: string;
  readonly parent?: string | undefined;
  /** The row that the parent's pair in the path names; refuses one that the caller may not use so. */
  readonly parentOf?: (call: ResourceCall, id: string | undefined) => P;
  readonly methods: readonly ShopMethod[];
  /** Where rows are kept: new ones are put there, removed ones taken out. */
  readonly rows: (call: ResourceCall, parent: P) => readonly T[];
  /** Default: a row with an owner is its owner's, any other everybody's. */
  readonly sees?: (call: ResourceCall, row: T) => boolean;
  /** Refuses an id that none of these rows has. */
  readonly missing?: Refusal;
  /** Refuses no id where one is needed. */
  readonly unnamed?: Refusal;
  /** Rows are read one by one, never all. */
  readonly isUnlisted?: true;
  /** Refuses what the caller sees and may not do; comes before anything is changed. */
  readonly check?: (call: ResourceCall, row: T) => void;
  readonly fields: Readonly<Record<string, Field>>;
  /** Attributes that are computed. */
  readonly computed?: (call: ResourceCall, row: T, parent: P) => object;
  readonly related?: (call: ResourceCall, row: T) => Relations;
  /** Default: the row. A change of what is in a cart answers with the cart. */
  readonly answer?: (call: ResourceCall, parent: P) => Resource;
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

export class Table<T extends Row, P = undefined> {
  readonly columns: Columns<T, P>;

  constructor(columns: Columns<T, P>) {
    this.columns = columns;
  }

  get route(): ResourceRoute {
    const { type, parent, parentOf, methods, fields, idInBody } = this.columns;
    const acts = { GET: this.#read, POST: this.#create, PATCH: this.#change, DELETE: this.#remove };
    const actionOf = (method: ShopMethod) => {
      const rules = Object.entries(fields).map(([name, field]) => [name, field[method]] as const);
      const attributes = Object.fromEntries(
        rules.filter((each): each is [string, Rule] => each[1] !== undefined),
      );
      const handle = (call: ResourceCall) =>
        acts[method].call(this, call, parentOf?.(call, call.parents.get(parent ?? '')) as P);
      return { handle, attributes, idInBody };
    };
    return { type, parent, methods: Object.fromEntries(methods.map((method) => [method, actionOf(method)])) };
  }

  /** A row that the caller sees. */
  find(call: ResourceCall, id: string | null | undefined, parent?: P): T {
    const { missing = 'notFound', unnamed = missing } = this.columns;
    if (!id) refuse(unnamed);
    return this.#visible(call, parent as P).find((row) => row.id === id) ?? refuse(missing);
  }

  /** A row as a resource; one that lies under a row of another table says so in its link. */
  show(call: ResourceCall, row: T, parent?: P): Resource {
    const { type, fields, computed, related } = this.columns;
    const named = Object.entries(row).filter(([name]) => {
      return Object.hasOwn(fields, name) && fields[name]?.isHidden !== true;
    });
    const attributes = { ...Object.fromEntries(named), ...computed?.(call, row, parent as P) };
    const above = parent === undefined ? '' : `/${this.columns.parent}/${(parent as Row).id}`;
    const self = `${above}/${type}/${row.id}`;
    return { type, id: row.id, self, attributes, related: related?.(call, row) ?? {} };
  }

  #visible(call: ResourceCall, parent: P): readonly T[] {
    const { rows, sees = (_, { owner }) => owner === undefined || owner === call.owner } = this.columns;
    return rows(call, parent).filter((row) => sees(call, row));
  }

  #read(call: ResourceCall, parent: P): Answer {
    const { mine, isUnlisted } = this.columns;
    if (isUnlisted || (call.id && (call.id !== 'mine' || mine === undefined))) {
      return { status: 200, data: this.show(call, this.find(call, call.id, parent), parent) };
    }
    const rows = this.#visible(call, parent).filter((row) => !call.id || mine?.(call, row));
    return { status: 200, data: rows.map((row) => this.show(call, row, parent)) };
  }

  #create(call: ResourceCall, parent: P): Answer {
    const { make, rows, created } = this.columns;
    const row = make?.(call, randomUUID(), parent) ?? refuse('notFound');
    const kept = rows(call, parent) as T[];
    this.#assign(call, row);
    if (!kept.includes(row)) kept.push(row);
    return this.#changed(call, row, parent, created ?? 201);
  }

  #change(call: ResourceCall, parent: P): Answer {
    const row = this.find(call, namedIds(call)[0], parent);
    this.#assign(call, row);
    return this.#changed(call, row, parent, 200);
  }

  #changed(call: ResourceCall, row: T, parent: P, status: number): Answer {
    const { after, answer } = this.columns;
    after?.(call, row, parent);
    return { status, data: answer?.(call, parent) ?? this.show(call, row, parent) };
  }

  #remove(call: ResourceCall, parent: P): Answer {
    const rows = this.columns.rows(call, parent) as T[];
    for (const row of namedIds(call).map((id) => this.find(call, id, parent))) {
      this.columns.check?.(call, row);
      rows.splice(rows.indexOf(row), 1);
      this.columns.after?.(call, row, parent);
    }
    return noContent;
  }

  #assign(call: ResourceCall, row: T): void {
    this.columns.check?.(call, row);
    const values = row as Record<string, unknown>;
    for (const [name, { [call.method]: rule, isHidden, isAdded }] of Object.entries(this.columns.fields)) {
      const given = call.attributes[name];
      if (rule === undefined || isHidden || given === undefined) continue;
      values[name] = isAdded && call.method === 'POST' ? Number(values[name]) + Number(given) : given;
    }
  }
}

/** The route of what is only read, and is no row of a table. */
export function reading(
  type: string,
  show: (call: ResourceCall) => Resource | readonly Resource[],
  parent?: string,
): ResourceRoute {
  return { type, parent, methods: { GET: { handle: (call) => ({ status: 200, data: show(call) }) } } };
}

/** What there is exactly once, the shop answers as a collection of one. */
export function readingOne(type: string, attributesOf: (call: ResourceCall) => object): ResourceRoute {
  return reading(type, (call) => [{ type, id: null, attributes: attributesOf(call) }]);
}

function namedIds({ id, bodyIds }: ResourceCall): readonly string[] {
  const ids = id ? [id] : bodyIds;
  return ids.length > 0 ? ids : refuse('idMissing');
}
