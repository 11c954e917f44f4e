import { createKeptClient } from '../../../harness/kept-client.ts';
import { type RecordedRequest, startRecordingUpstream } from '../../../harness/recording-upstream.ts';
import { type RunningShopward, startShopward } from '../../../harness/shopward.ts';
import { startShopwardHere } from '../../../harness/shopward-here.ts';
import type { StageName } from './corpus-schema.ts';
import { answerAsShop } from './corpus-shop.ts';

interface StageConfig {
  readonly upstream?: object;
  readonly [section: string]: unknown;
}

/** What each stage adds to the shipped configuration. */
const stageConfigs: Readonly<Record<StageName, StageConfig>> = {
  shop: {},
  trusting: { trustedProxies: ['127.0.0.0/8'] },
  parties: { auth: { issuer: 'https://shop.example', audience: ['frontend', 'app'] } },
  small: { limits: { requestBody: '1KiB', requestHeaders: '16KiB' } },
  observe: { mode: 'observe' },
  slashes: { request: { encodedSlash: ['/stores/{name}', '/carts/{id}'] } },
  sockets: { upstream: { webSocket: true } },
  hosts: { upstream: { forwardHost: true } },
  versions: { request: { ignoredPrefixes: ['/index.php', '/1', '/1.0', '/v1', '/v1.0'] } },
  lenient: {
    entityTags: {
      resources: [
        {
          ...{ collection: '/carts', member: '/carts/{cart_id}' },
          ...{ methods: ['PATCH', 'DELETE'], ifMatch: 'lenient' },
        },
      ],
    },
  },
};

export type CorpusStage = Awaited<ReturnType<typeof openStage>>;

/** One proxy in front of one shop that records every octet. */
export async function openStage(name: StageName) {
  /** Heads that the shop has read, in order. */
  const heads: string[] = [];
  const shop = (request: RecordedRequest) => {
    heads.push(request.head);
    return answerAsShop(request);
  };
  // An answer before the end of the request would end the client's connection.
  const upstream = await startRecordingUpstream(shop, { answersWhole: true });
  const config = stageConfigs[name];
  const options = { upstream: `http://127.0.0.1:${upstream.port}`, config };
  /** In the stage `shop` only, the proxy is a process. */
  const process = name === 'shop' ? await startShopward(options) : undefined;
  const shopward: RunningShopward = process ?? (await startShopwardHere(options));
  /** A client whose connection carries no attack. */
  const bystander = createKeptClient(shopward.port);
  return {
    shopward,
    process,
    bystander,
    heads,
    /** A reader of every octet that the shop gets from now on, latin-1. */
    bytesSince: () => {
      const before = upstream.connections.map((connection) => connection.received().length);
      return () =>
        upstream.connections.map((connection, i) => connection.received().slice(before[i] ?? 0)).join('');
    },
    close: async () => {
      bystander.close();
      await upstream.close();
      await shopward.stop();
    },
  };
}
