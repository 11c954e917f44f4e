import type { DemoShop } from '../../../demo/shop.ts';
import { freePort } from '../../harness/free-port.ts';
import { type SingleRedis, startRedis } from '../../harness/redis-processes.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

/** Addresses of the views. */
export const views = ['now', 'requests', 'list', 'roll-out', 'system'] as const;

/** Selector that shows that a view is complete. */
export const filled: Readonly<Record<string, string>> = {
  // Drawn last, after the numbers above it.
  now: '#now-marks tr',
  requests: '#search-state:not(:text("loading"))',
  list: '#row-body tr',
  'roll-out': '#roll-out-sentence .say',
  system: '#processes-body tr',
};

/** A real shopward in front of a demo shop, which a test can bring into each state. */
export class ConsoleStage {
  readonly shop: DemoShop;
  #shopward: RunningShopward | undefined;
  #store: SingleRedis | undefined;

  constructor(shop: DemoShop) {
    this.shop = shop;
  }

  get shopward(): RunningShopward {
    if (this.#shopward === undefined) throw new Error('nothing was started');
    return this.#shopward;
  }

  async start(config: object = {}, upstream = this.shop.url): Promise<void> {
    this.#shopward = await startShopwardHere({
      upstream,
      config: {
        auth: { keys: { jwks: this.shop.jwksUrl }, subject: 'sub.customer_reference' },
        trustedProxies: ['127.0.0.1/32'],
        ...config,
      },
    });
  }

  /** Starts a store of the stage, and returns settings that use it. */
  async startStore(): Promise<object> {
    this.#store = await startRedis();
    return { store: { url: this.#store.url } };
  }

  async endStore(): Promise<void> {
    await this.#store?.close();
    this.#store = undefined;
  }

  async ask(target: string, request: RequestInit = {}): Promise<void> {
    const response = await fetch(`${this.shopward.url}${target}`, request);
    await response.arrayBuffer();
  }

  /** Valid requests, and some without a token. */
  async traffic(times: number): Promise<void> {
    const token = await this.shop.issueTokenFor('DE--1');
    for (let i = 0; i < times; i++) {
      await this.ask(`/abstract-products/${i}`);
      await this.ask('/carts', { headers: { Authorization: `Bearer ${token}` } });
      if (i % 10 === 0) await this.ask('/orders');
    }
  }

  async askForCarts(): Promise<void> {
    const token = await this.shop.issueTokenFor('DE--1');
    await this.ask('/carts', { headers: { Authorization: `Bearer ${token}` } });
  }

  async attack(times: number): Promise<void> {
    for (let i = 0; i < times; i++)
      await this.ask(`/orders/DE--${i}`, { headers: { Authorization: 'Bearer abc' } });
  }

  async stop(): Promise<void> {
    const shopward = this.#shopward;
    this.#shopward = undefined;
    await shopward?.stop();
    await this.endStore();
  }
}

export interface ConsoleState {
  readonly name: 'new' | 'healthy' | 'attack' | 'shop down' | 'Redis down' | 'observe' | 'two things';
  make(stage: ConsoleStage): Promise<void>;
  /** Repeated until the sentence is shown, which is about the last minute. */
  readonly again?: (stage: ConsoleStage) => Promise<void>;
  /** The sentence of the first screen in this state. */
  readonly sentence: RegExp;
  readonly status: 'ok' | 'notice' | 'degraded' | 'down';
}

/** All states that the first screen tells apart. */
export const consoleStates: readonly ConsoleState[] = [
  {
    name: 'new',
    make: (stage) => stage.start(),
    sentence: /^Ready, and waiting for the first request\. 56 rows enforced\.$/,
    status: 'ok',
  },
  {
    name: 'healthy',
    async make(stage) {
      await stage.start();
      await stage.traffic(40);
    },
    sentence: /^All is well\. 56 rows enforced\.$/,
    status: 'ok',
  },
  {
    name: 'attack',
    async make(stage) {
      await stage.start();
      await stage.traffic(10);
      await stage.attack(200);
    },
    again: (stage) => stage.attack(50),
    sentence: /^Serving, but most requests are refused$/,
    status: 'degraded',
  },
  {
    name: 'shop down',
    async make(stage) {
      await stage.start({}, `http://127.0.0.1:${await freePort()}`);
      for (let i = 0; i < 20; i++) await stage.ask(`/abstract-products/${i}`);
    },
    sentence: /^The shop does not answer$/,
    status: 'down',
  },
  {
    name: 'Redis down',
    async make(stage) {
      await stage.start(await stage.startStore());
      await stage.traffic(10);
      await stage.endStore();
      await stage.askForCarts();
    },
    sentence: /^Redis cannot be used$/,
    status: 'down',
  },
  {
    name: 'observe',
    async make(stage) {
      await stage.start({ mode: 'observe' });
      await stage.traffic(30);
      for (let i = 0; i < 12; i++)
        await stage.ask('/orders/DE--1001', { headers: { Authorization: 'Bearer abc' } });
    },
    sentence: /^Serving; \d+ % of requests would be refused\. Observe mode: nothing is enforced\.$/,
    status: 'notice',
  },
  {
    name: 'two things',
    async make(stage) {
      await stage.start(await stage.startStore(), `http://127.0.0.1:${await freePort()}`);
      await stage.attack(60);
      for (let i = 0; i < 20; i++) await stage.ask(`/abstract-products/${i}`);
      await stage.endStore();
      await stage.askForCarts();
    },
    again: (stage) => stage.attack(50),
    sentence: /^(The shop does not answer|Redis cannot be used), and 2 more things are not well$/,
    status: 'down',
  },
];
