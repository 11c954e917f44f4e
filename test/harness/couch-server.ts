import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import memory from 'pouchdb-adapter-memory';
import PouchDB from 'pouchdb-core';
import { listen } from './listen.ts';

PouchDB.plugin(memory);
let databases = 0;

/**
 * CouchDB's protocol over a PouchDB database: documents, `_local`, `_changes`, and the requests of a replication. Its
 * tags are revisions. A client that does not ask for JSON gets text.
 */
export async function startCouchServer() {
  databases += 1;
  const database = new PouchDB(`served-${databases}`, { adapter: 'memory' });
  const lines: string[] = [];
  const server = createServer(async (request, response) => {
    lines.push(`${request.method} ${request.url}`);
    const isJson = request.headers.accept?.includes('application/json') === true;
    const answer = await answerOf(database, request).catch(({ status = 500, name, reason }) => ({
      status,
      body: { error: name, reason },
      rev: undefined,
    }));
    response.writeHead(answer.status ?? 200, {
      'Content-Type': isJson ? 'application/json' : 'text/plain; charset=utf-8',
      'Cache-Control': 'must-revalidate',
      ...(answer.rev !== undefined && { ETag: `"${answer.rev}"` }),
    });
    response.end(`${JSON.stringify(answer.body)}\n`);
  });
  const { url, close } = await listen(server);
  return {
    database,
    /** Method and target of each request. */
    lines,
    url,
    async close() {
      await close();
      await database.destroy();
    },
  };
}

async function answerOf(database: PouchDB, request: IncomingMessage) {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://couch');
  // The first segment is the database.
  const id = pathname.split('/').slice(2).map(decodeURIComponent).join('/');
  const options = Object.fromEntries([...searchParams].map(([name, text]) => [name, parameterOf(text)]));
  // biome-ignore lint/suspicious/noExplicitAny: the database checks what the client sends
  const sent: any = request.method === 'PUT' || request.method === 'POST' ? await json(request) : {};
  const sentRev = request.headers['if-match']?.replaceAll('"', '') ?? options.rev;
  const toWrite = { ...sent, ...(sentRev !== undefined && { _rev: sentRev }), _id: id };
  switch (`${request.method} ${id.replace(/^[^_].*|^_local\/.*/, 'document')}`) {
    case 'GET ':
      return { body: await database.info() };
    case 'GET _changes':
      return { body: await database.changes(options) };
    case 'POST _revs_diff':
      return { body: await database.revsDiff(sent) };
    case 'POST _bulk_get':
      return { body: await database.bulkGet({ ...options, ...sent }) };
    case 'POST _bulk_docs':
      return { status: 201, body: await database.bulkDocs(sent) };
    case 'GET document': {
      const document = await database.get(id, options);
      return { body: document, rev: document._rev };
    }
    case 'PUT document': {
      const written = await database.put(toWrite);
      return { status: 201, body: written, rev: written.rev };
    }
    case 'DELETE document':
      return { body: await database.remove(toWrite) };
    default:
      return { status: 404, body: { error: 'not_found' } };
  }
}

/** A parameter is JSON, or else a plain word. */
function parameterOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
