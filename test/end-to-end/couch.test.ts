import http from 'pouchdb-adapter-http';
import PouchDB from 'pouchdb-core';
import replication from 'pouchdb-replication';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCouchServer } from '../harness/couch-server.ts';
import { callShop, jsonOf, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

PouchDB.plugin(http).plugin(replication);

let couch: Awaited<ReturnType<typeof startCouchServer>>;
let shopward: RunningShopward;

beforeAll(async () => {
  couch = await startCouchServer();
  shopward = await startShopwardHere({
    upstream: couch.url,
    rows: ['ANY /notes/{id}', 'ANY /notes/{id}/**'],
    config: {
      request: { profile: 'plain' },
      entityTags: {
        resources: [
          {
            collection: '/notes',
            member: '/notes/{id}',
            methods: ['PUT', 'DELETE'],
            nonMembers: ['_changes', '_revs_diff', '_bulk_get', '_local'],
          },
        ],
      },
    },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await couch?.close();
});

const call = (line: string, options: ShopCall = {}) =>
  callShop(shopward.port, line, { token: shopward.issueToken(), ...options });

/** A PouchDB client of shopward. It sends the last tag of a document as `If-Match`, or `If-None-Match: *` for a new one. */
function openNotes() {
  const tags = new Map<string, string>();
  return new PouchDB(`${shopward.url}/notes`, {
    adapter: 'http',
    skip_setup: true,
    async fetch(url: string, options: { method?: string; headers: Headers }) {
      const path = new URL(url).pathname;
      const tag = tags.get(path);
      options.headers.set('authorization', `Bearer ${shopward.issueToken()}`);
      if (options.method === 'PUT' || options.method === 'DELETE')
        options.headers.set(tag === undefined ? 'if-none-match' : 'if-match', tag ?? '*');
      const response = await fetch(url, options);
      tags.set(path, response.headers.get('etag') ?? '*');
      return response;
    },
  });
}

describe('a CouchDB whose documents are tracked', () => {
  it('creates, reads, changes and removes a text/plain document with its tags', async () => {
    expect(outcomeOf(await call('PUT /notes/raw', { body: { text: 'one' } }))).toBe('428 005');
    const created = await call('PUT /notes/raw', { body: { text: 'one' }, ifNoneMatch: '*' });
    expect([created.status, created.field('content-type')]).toEqual([201, 'text/plain; charset=utf-8']);
    expect(outcomeOf(await call('PUT /notes/raw', { body: {}, ifNoneMatch: '*' }))).toBe('412 006');
    const read = await call('GET /notes/raw');
    const { _rev } = jsonOf(read);
    const tag = read.field('etag') ?? '';
    expect([read.status, tag.includes(_rev)]).toEqual([200, false]);
    expect((await call('GET /notes/raw', { ifNoneMatch: tag })).status).toBe(304);
    // The tag of the 201 is also current.
    const ifMatch = created.field('etag') ?? '';
    const changed = await call('PUT /notes/raw', { body: { text: 'two', _rev }, ifMatch });
    expect(changed.status).toBe(201);
    expect(outcomeOf(await call('PUT /notes/raw', { body: { _rev }, ifMatch: tag }))).toBe('412 006');
    const last = changed.field('etag') ?? '';
    const remove = await call(`DELETE /notes/raw?rev=${jsonOf(changed).rev}`, { ifMatch: last });
    expect(remove.status).toBe(200);
    expect((await call('GET /notes/raw')).status).toBe(404);
  });

  it('PouchDB writes with tags; if two clients change one revision, the second gets 412', async () => {
    const [anna, ben] = [openNotes(), openNotes()];
    await anna.put({ _id: 'note', text: 'one' });
    const seen = [await anna.get('note'), await ben.get('note')];
    await anna.put({ ...seen[0], text: 'of Anna' });
    await expect(ben.put({ ...seen[1], text: 'of Ben' })).rejects.toMatchObject({ status: 412 });
    await ben.put({ ...(await ben.get('note')), text: 'of both' });
    expect(await couch.database.get('note')).toMatchObject({ text: 'of both' });
  });

  it('PouchDB replicates by the changes feed and continues from its checkpoint', async () => {
    const local = new PouchDB('local', { adapter: 'memory' });
    const notes = openNotes();
    await notes.put({ _id: 'first', text: 'one' });
    expect((await local.replicate.from(notes)).docs_written).toBeGreaterThan(0);
    expect(await local.get('first')).toMatchObject({ text: 'one' });
    await notes.put({ _id: 'second', text: 'two' });
    const before = couch.lines.length;
    expect((await local.replicate.from(notes)).docs_written).toBe(1);
    // PouchDB stores its checkpoint as a document, which is not tracked.
    const asked = couch.lines.slice(before);
    expect(asked.some((line) => line.startsWith('PUT /notes/_local/'))).toBe(true);
    expect(asked.some((line) => /^GET \/notes\/_changes\?.*since=[1-9]/.test(line))).toBe(true);
    await local.destroy();
  });

  it('428 for a bulk change, which names no tag', async () => {
    const before = couch.lines.length;
    const local = new PouchDB('pushing', { adapter: 'memory' });
    await local.put({ _id: 'pushed' });
    await expect(local.replicate.to(openNotes())).rejects.toMatchObject({ status: 428 });
    expect(couch.lines.slice(before).filter((line) => line.includes('_bulk_docs'))).toEqual([]);
    await local.destroy();
  });
});
