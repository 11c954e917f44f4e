import { expect, test } from 'vitest';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { ask } from '../resilience/faults/ask.ts';

/** RFC 9112 section 9.3.1: a server may close an idle connection at any time, also when a request is on its way. */
test.each(['/stores/1', '/url-resolver?url=/'])(
  'GET %s is sent again if the upstream resets its idle connection',
  async (path) => {
    let asked = 0;
    const document = JSON.stringify({
      data: [{ type: 'url-resolver', id: null, attributes: { entityType: 'cms-pages', entityId: '1' } }],
    });
    const upstream = await startRecordingUpstream(({ index, connection }) => {
      asked += 1;
      if (index === 0) return answer(document, 'Content-Type: application/vnd.api+json\r\n');
      connection.socket.resetAndDestroy();
      return undefined;
    });
    const shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${upstream.port}` });
    const words: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      const query = path.endsWith('/') ? String(i) : '';
      words.push((await ask(shopward.port, { method: 'GET', path: path + query })).words.slice(0, 3));
    }
    await shopward.stop();
    await upstream.close();
    expect([words, asked]).toEqual([['200', '200', '200'], 5]);
  },
);
