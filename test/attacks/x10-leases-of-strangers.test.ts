import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../harness/attack-stage.ts';
import { createKeptClient, type KeptClient } from '../harness/kept-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

/**
 * X10: what anybody may send must not keep the owner of a cart waiting. The shop takes 60 ms to say that there is no such
 * route, or acts on what a stranger sends.
 */
const strangers = 32;
const writes = 20;
const json = ['Content-Type: application/json', 'Content-Length: 2'];
const shopMs = 60;
const type = 'Content-Type: application/vnd.api+json\r\n';

describe.each([
  ['a shop that knows no such route', 'POST /carts/1/x', '404 Not Found'],
  ['a shop that breaks', 'POST /carts/1/x', '500 Internal Server Error'],
  ['another method on the cart itself', 'PUT /carts/1', '404 Not Found'],
])('X10: 32 connections without a token, %s', (_, line, status) => {
  let upstream: RecordingUpstream;
  let shopward: Shopward;
  beforeAll(async () => {
    upstream = await startRecordingUpstream(async ({ head }) => {
      if (!head.startsWith('GET ')) await sleep(shopMs);
      const isStranger = head.startsWith(line);
      return isStranger ? answer('{}', '', status) : answer(`{"data":{"n":${Math.random()}}}`, type);
    });
    shopward = await startShopward({ upstream: `http://127.0.0.1:${upstream.port}` });
  });
  afterAll(async () => {
    await shopward?.stop();
    await upstream?.close();
  });

  it('the owner writes as if nobody else were there', async () => {
    const bearer = [`Authorization: Bearer ${shopward.issueToken()}`];
    let isOver = false;
    let sent = 0;
    const stranger = async () => {
      const client = createKeptClient(shopward.port);
      while (!isOver) {
        await client.exchange(request(line, json, '{}'));
        sent += 1;
      }
      client.close();
    };
    const flood = Array.from({ length: strangers }, stranger);
    const owner: KeptClient = createKeptClient(shopward.port);
    const statuses: number[] = [];
    for (let i = 0; i < writes; i += 1) {
      const read = await owner.exchange(request('GET /carts/1', bearer));
      const tag = [`If-Match: ${read.field('etag') ?? '"none"'}`];
      const written = await owner.exchange(request('PATCH /carts/1', [...bearer, ...tag, ...json], '{}'));
      statuses.push(written.status);
    }
    isOver = true;
    await Promise.all(flood);
    owner.close();
    const busy = statuses.filter((one) => one === 503).length;
    console.log(`${line} (${status}): ${sent} of strangers, ${writes} of the owner, ${busy} times 503`);
    expect(busy).toBe(0);
    expect(sent).toBeGreaterThan(strangers);
  });
});
