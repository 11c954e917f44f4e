import { randomUUID } from 'node:crypto';
import { type Refusal, refuse } from './refusals.ts';
import type { Answer, Relations, Resource, ResourceCall, ResourceRoute, ShopMethod } from './resource.ts';
import { noContent } from './resource.ts';
import { optional, type Rule } from './rules.ts';

export type Row = { readonly id: string; readonly owner?: string };

/** An attribute, with its rule for each method that may set it (none by default). */
type Field = Partial<Record<ShopMethod, Rule>> & {
  /** Only used to make the row; neither stored nor shown. */
  readonly isHidden?: true;
  /** POST adds the value to the stored one. */
  readonly isAdded?: true;
};

/** Shown, but only the shop sets it. */
export const shown: Field = {};

/** POST must set it, PATCH may. */
export function required(rule: Rule): Field {
  return { POST: rule, PATCH: optional(rule) };
}

/** POST and PATCH may set it. */
export function settable(rule: Rule): Field {
  return { POST: optional(rule), PATCH: optional(rule) };
}

/** Only POST sets it. */
export function fixed(rule: Rule): Field {
  return { POST: rule };
}

export function hidden(rule: Rule): Field {
  return { POST: rule, isHidden: true };
}

/** Several attributes with the same rules. */
export function each(field: Field, ...names: readonly string[]): Readonly<Record<string, Field>> {
  return Object.fromEntries(names.map((name) => [name, field]));
}

/** A resource as a table: its rows, who sees them, their fields, and its methods. */
export type Columns<T extends Row, P = undefined> = {
  readonly type: string;
  readonly parent?: string | undefined;
  /** Finds the row that the parent's pair in the path names. Refuses if the caller may not use it. */
  readonly parentOf?: (call: ResourceCall, id: string | undefined) => P;
  readonly methods: readonly ShopMethod[];
  /** The stored rows; new ones are added, removed ones taken out. */
  readonly rows: (call: ResourceCall, parent: P) => readonly T[];
  /** Default: only its owner sees a row; everyone sees a row without an owner. */
  readonly sees?: (call: ResourceCall, row: T) => boolean;
  /** Refusal of an id that no row has. */
  readonly missing?: Refusal;
  /** Refusal of a request without an id. */
  readonly unnamed?: Refusal;
  /** Rows are read one by one; there is no list. */
  readonly isUnlisted?: true;
  /** Refuses a change of a row that the caller sees but may not change; called before the change. */
  readonly check?: (call: ResourceCall, row: T) => void;
  readonly fields: Readonly<Record<string, Field>>;
  /** Computed attributes. */
  readonly computed?: (call: ResourceCall, row: T, parent: P) => object;
  readonly related?: (call: ResourceCall, row: T) => Relations;
  /** The answer to a change; default: the row. A change of an item answers with the cart. */
  readonly answer?: (call: ResourceCall, parent: P) => Resource;
  /** Makes the row that POST fills in, or returns an existing one to change. */
  readonly make?: (call: ResourceCall, id: string, parent: P) => T;
  /** Further effects of a change or a removal. */
  readonly after?: (call: ResourceCall, row: T, parent: P) => void;
  /** Rows that the id `mine` selects; left out, `mine` is an id like any other. */
  readonly mine?: (call: ResourceCall, row: T) => boolean;
  /** PATCH and DELETE may name rows in the body. */
  readonly idInBody?: true;
  /** Status of POST; default 201. */
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

  /** Finds a row that the caller may see. */
  find(call: ResourceCall, id: string | null | undefined, parent?: P): T {
    const { missing = 'notFound', unnamed = missing } = this.columns;
    if (!id) refuse(unnamed);
    return this.#visible(call, parent as P).find((row) => row.id === id) ?? refuse(missing);
  }

  /** A row as a resource. The link of a row in another table's row contains both rows. */
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

/** The route of a resource that is only read and has no table. */
export function reading(
  type: string,
  show: (call: ResourceCall) => Resource | readonly Resource[],
  parent?: string,
): ResourceRoute {
  return { type, parent, methods: { GET: { handle: (call) => ({ status: 200, data: show(call) }) } } };
}

/** A resource that exists once; the shop answers a collection of one. */
export function readingOne(type: string, attributesOf: (call: ResourceCall) => object): ResourceRoute {
  return reading(type, (call) => [{ type, id: null, attributes: attributesOf(call) }]);
}

function namedIds({ id, bodyIds }: ResourceCall): readonly string[] {
  const ids = id ? [id] : bodyIds;
  return ids.length > 0 ? ids : refuse('idMissing');
}
