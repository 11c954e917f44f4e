/** Types of the parts of PouchDB that the tests use; it has none. */
declare module 'pouchdb-core' {
  type Document = { readonly _id?: string; readonly _rev?: string; readonly [name: string]: unknown };
  interface Written {
    readonly ok: boolean;
    readonly id: string;
    readonly rev: string;
  }
  export default class PouchDB {
    constructor(name: string, options?: object);
    static plugin(plugin: unknown): typeof PouchDB;
    readonly replicate: {
      from(source: PouchDB): Promise<{ docs_written: number }>;
      to: PouchDB['replicate']['from'];
    };
    info(): Promise<object>;
    get(id: string, options?: object): Promise<Document>;
    put(document: Document): Promise<Written>;
    remove(document: Document): Promise<Written>;
    changes(options: object): Promise<object>;
    revsDiff(revisions: unknown): Promise<object>;
    bulkGet(options: unknown): Promise<object>;
    bulkDocs(request: unknown): Promise<object>;
    destroy(): Promise<void>;
  }
}
declare module 'pouchdb-adapter-memory';
declare module 'pouchdb-adapter-http';
declare module 'pouchdb-replication';
