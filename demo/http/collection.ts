import { type Refusal, refuse } from './refusals.ts';
import type { AttributeRules, Resource, ResourceCall, ResourceRoute, ShopMethod } from './resource.ts';
import { answerOne, noContent } from './resource.ts';

/** A resource as a table: what it lies under, which records there are, how they are shown and how they change. */
export type Collection<T, P> = {
  readonly type: string;
  readonly parent?: string;
  /** The record that the parent's pair in the path names; refuses one that the caller may not use so. */
  readonly parentOf?: (call: ResourceCall, id: string | undefined) => P;
  /** Every record that the caller may see. */
  readonly records: (call: ResourceCall, parent: P) => readonly T[];
  readonly show: (call: ResourceCall, record: T, parent: P) => Resource;
  /** What one record of a list shows; default: all of it. */
  readonly summarize?: (call: ResourceCall, record: T) => Resource;
  /** Refuses an id that none of the records shows. */
  readonly missing?: Refusal;
  /** Finds one record in its own way, such as by what is to be done with it. */
  readonly find?: (call: ResourceCall, id: string, method: ShopMethod, parent: P) => T;
  /** The records that the pseudo id `mine` stands for; without it `mine` is an id like any other. */
  readonly mine?: (call: ResourceCall, record: T) => boolean;
  /** GET answers with a list whether an id is given or not, or there is none. Default `both`. */
  readonly reads?: 'both' | 'list' | 'never';
  readonly create?: {
    readonly attributes: AttributeRules;
    /** Default 201. */
    readonly status?: number;
    readonly run: (call: ResourceCall, parent: P) => T;
  };
  readonly change?: {
    readonly attributes: AttributeRules;
    readonly run: (call: ResourceCall, record: T, parent: P) => void;
  };
  readonly remove?: (call: ResourceCall, record: T, parent: P) => void;
  /** PATCH and DELETE may name their records in the body. */
  readonly idInBody?: true;
};

/** The route of a collection. */
export function collection<T, P = undefined>(table: Collection<T, P>): ResourceRoute {
  const { type, parent, create, change, remove, idInBody } = table;
  const methods: ResourceRoute['methods'] = {};
  if (table.reads !== 'never') methods.GET = { handle: (call) => read(table, call) };
  if (create !== undefined) {
    const handle = (call: ResourceCall) => {
      const owner = parentOf(table, call);
      return answerOne(table.show(call, create.run(call, owner), owner), create.status ?? 201);
    };
    methods.POST = { attributes: create.attributes, handle };
  }
  if (change !== undefined) {
    const handle = (call: ResourceCall) => {
      const owner = parentOf(table, call);
      const record = find(table, call, owner, namedIds(call)[0] ?? '', 'PATCH');
      change.run(call, record, owner);
      return answerOne(table.show(call, record, owner));
    };
    methods.PATCH = { attributes: change.attributes, idInBody, handle };
  }
  if (remove !== undefined) {
    const handle = (call: ResourceCall) => {
      const owner = parentOf(table, call);
      const records = namedIds(call).map((id) => find(table, call, owner, id, 'DELETE'));
      for (const record of records) remove(call, record, owner);
      return noContent;
    };
    methods.DELETE = { idInBody, handle };
  }
  return { type, parent, methods };
}

/** The route of what is only read. */
export function reading(
  type: string,
  show: (call: ResourceCall) => Resource | readonly Resource[],
  parent?: string,
): ResourceRoute {
  return { type, parent, methods: { GET: { handle: (call) => ({ status: 200, data: show(call) }) } } };
}

function read<T, P>(table: Collection<T, P>, call: ResourceCall) {
  const owner = parentOf(table, call);
  const { id } = call;
  const isMine = id === 'mine' && table.mine !== undefined;
  if (id && !isMine && table.reads !== 'list') {
    return answerOne(table.show(call, find(table, call, owner, id, 'GET'), owner));
  }
  const records = table.records(call, owner).filter((each) => !isMine || table.mine?.(call, each));
  const show = table.summarize ?? ((_, record) => table.show(call, record, owner));
  return { status: 200, data: records.map((record) => show(call, record)) };
}

function parentOf<T, P>({ parent, parentOf }: Collection<T, P>, call: ResourceCall): P {
  return parentOf?.(call, call.parents.get(parent ?? '')) as P;
}

function find<T, P>(
  table: Collection<T, P>,
  call: ResourceCall,
  owner: P,
  id: string,
  method: ShopMethod,
): T {
  if (table.find !== undefined) return table.find(call, id, method, owner);
  const found = table.records(call, owner).find((record) => table.show(call, record, owner).id === id);
  return found ?? refuse(table.missing ?? 'notFound');
}

function namedIds({ id, bodyIds }: ResourceCall): readonly string[] {
  const ids = id ? [id] : bodyIds;
  return ids.length > 0 ? ids : refuse('idMissing');
}

/** The named members of a record, in that order. */
export function pick<T extends object, K extends keyof T>(record: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, record[name]])) as Pick<T, K>;
}
