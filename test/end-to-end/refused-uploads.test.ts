import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { uploadClients, uploadSettings, uploads } from '../harness/upload-clients.ts';

let shop: RecordingUpstream;
let shopward: Shopward;

beforeAll(async () => {
  shop = await startRecordingUpstream(() => undefined);
  shopward = await startShopward({ upstream: `http://127.0.0.1:${shop.port}`, ...uploadSettings });
});
afterAll(async () => {
  await shopward?.kill();
  await shop?.close();
});

describe.each(Object.entries(uploadClients))('%s gets the status of a refused upload', (_, send) => {
  it.each(uploads)('POST %s: %i for %i bytes', async (path, status, bytes) => {
    const url = `http://127.0.0.1:${shopward.port}${path}`;
    for (let round = 0; round < 3; round += 1) expect(await send(url, bytes)).toBe(status);
  });
});

it('no upload without a token reached the shop', () => {
  expect(shop.requestLines.filter((line) => line.includes('/orders'))).toEqual([]);
});
