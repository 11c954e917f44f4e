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
export type Columns<T extends Row, P = undefined> = {
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
    const { type, parent, parentOf, idInBody, methods } = this.columns;
    const within = (act: (call: ResourceCall, parent: P) => Answer): Action['handle'] => {
      return (call) => act(call, parentOf?.(call, call.parents.get(parent ?? '')) as P);
    };
    const actions: Record<ShopMethod, Action> = {
      GET: { handle: within((call, above) => this.#read(call, above)) },
      POST: { attributes: this.#rules('POST'), handle: within((call, above) => this.#create(call, above)) },
      PATCH: {
        ...{ attributes: this.#rules('PATCH'), idInBody },
        handle: within((call, above) => this.#change(call, above)),
      },
      DELETE: { idInBody, handle: within((call, above) => this.#remove(call, above)) },
    };
    return { type, parent, methods: Object.fromEntries(methods.map((method) => [method, actions[method]])) };
  }

  /** A row that the caller sees. */
  find(call: ResourceCall, parent: P, id: string): T {
    const found = this.#visible(call, parent).find((row) => row.id === id);
    return found ?? refuse(this.columns.missing ?? 'notFound');
  }

  /** A row as a resource; one that lies under a row of another table says so in its link. */
  show(call: ResourceCall, row: T, parent: P): Resource {
    const { type, fields, computed, related } = this.columns;
    const named = Object.entries(row).filter(([name]) => {
      return Object.hasOwn(fields, name) && fields[name]?.isHidden !== true;
    });
    const attributes = { ...Object.fromEntries(named), ...computed?.(call, row, parent) };
    const above = parent === undefined ? '' : `/${this.columns.parent}/${(parent as Row).id}`;
    const self = `${above}/${type}/${row.id}`;
    return { type, id: row.id, self, attributes, related: related?.(call, row) ?? {} };
  }

  #rules(method: 'POST' | 'PATCH'): AttributeRules {
    const rules = Object.entries(this.columns.fields).flatMap(([name, { [method]: rule }]) =>
      rule === undefined ? [] : [[name, rule] as const],
    );
    return Object.fromEntries(rules);
  }

  #visible(call: ResourceCall, parent: P): readonly T[] {
    const { rows, sees = (_, { owner }) => owner === undefined || owner === call.owner } = this.columns;
    return rows(call, parent).filter((row) => sees(call, row));
  }

  #read(call: ResourceCall, parent: P): Answer {
    const { mine, details } = this.columns;
    if (call.id && (call.id !== 'mine' || mine === undefined)) {
      const row = this.find(call, parent, call.id);
      const single = this.show(call, row, parent);
      return answerOne({ ...single, attributes: { ...single.attributes, ...details?.(row) } });
    }
    const rows = this.#visible(call, parent).filter((row) => !call.id || mine?.(call, row));
    return { status: 200, data: rows.map((row) => this.show(call, row, parent)) };
  }

  #create(call: ResourceCall, parent: P): Answer {
    const { make, rows, created } = this.columns;
    const row = make?.(call, randomUUID(), parent) ?? refuse('notFound');
    const kept = rows(call, parent) as T[];
    this.#assign(call, row, 'POST');
    if (!kept.includes(row)) kept.push(row);
    return this.#changed(call, row, parent, created ?? 201);
  }

  #change(call: ResourceCall, parent: P): Answer {
    const row = this.find(call, parent, namedIds(call)[0] ?? '');
    this.#assign(call, row, 'PATCH');
    return this.#changed(call, row, parent);
  }

  #changed(call: ResourceCall, row: T, parent: P, status = 200): Answer {
    const { after, answer } = this.columns;
    after?.(call, row, parent);
    return answerOne(answer?.(call, parent) ?? this.show(call, row, parent), status);
  }

  #remove(call: ResourceCall, parent: P): Answer {
    const rows = this.columns.rows(call, parent) as T[];
    for (const row of namedIds(call).map((id) => this.find(call, parent, id))) {
      this.columns.check?.(call, row, 'DELETE');
      rows.splice(rows.indexOf(row), 1);
      this.columns.after?.(call, row, parent);
    }
    return noContent;
  }

  #assign(call: ResourceCall, row: T, method: 'POST' | 'PATCH'): void {
    this.columns.check?.(call, row, method);
    const named = Object.entries(this.columns.fields).filter(([name, field]) => {
      return field[method] !== undefined && !field.isHidden && call.attributes[name] !== undefined;
    });
    Object.assign(row, Object.fromEntries(named.map(([name]) => [name, call.attributes[name]])));
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

function namedIds({ id, bodyIds }: ResourceCall): readonly string[] {
  const ids = id ? [id] : bodyIds;
  return ids.length > 0 ? ids : refuse('idMissing');
}
