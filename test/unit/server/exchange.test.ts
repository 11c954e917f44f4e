import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildRejections, reject } from '../../../src/http/rejection.ts';
import { RejectionBodies } from '../../../src/http/rejection-bodies.ts';
import { Exchange, type ExchangeContext } from '../../../src/server/exchange.ts';
import { InFlight } from '../../../src/server/in-flight.ts';
import { Listener } from '../../../src/server/listener.ts';
import { createOwnFields } from '../../../src/server/own-fields.ts';
import type { ForwardResult } from '../../../src/upstream/forward.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

/** Real requests, whose exchanges the test ends. */
let listener: Listener;
let port = 0;
let act: (exchange: Exchange) => void = () => {};
let records: object[] = [];
let faults: unknown[] = [];
const inFlight = new InFlight({ limit: 10, sharePercent: 100 });
const context: ExchangeContext = {
  cut: { isDue: false, requests: 0 },
  rejections: new RejectionBodies(buildRejections()),
  ownFields: createOwnFields(undefined),
  redactPath: (segments) => `/${segments.join('/')}`,
  record: ({ decision, status, rejection, reason, observed, fault, route }, request, sender) =>
    records.push({
      ...{ decision, status, rejection, reason, observed, fault, route },
      ...{ request: request?.requestId, sender: sender?.subject },
    }),
  onFault: (fault, requestId) => faults.push([(fault as Error).message, requestId]),
};

beforeAll(async () => {
  listener = new Listener({
    ...{ host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 60_000, requestHeadersBytes: 16_384 },
    rejectMalformed: (_why, socket) => socket.destroy(),
    handle: (incoming: IncomingMessage, response: ServerResponse) => {
      const exchange = new Exchange(incoming, response, inFlight.enter(), context);
      act(exchange);
      return exchange;
    },
  });
  port = (await listener.listen()).port;
});
afterAll(() => listener.drain({ graceMs: 0, withinMs: 0 }));

/** Sends one request. Returns its response (undefined if the connection was cut), records and faults. */
async function play(what: (exchange: Exchange) => void, more = '') {
  records = [];
  faults = [];
  act = what;
  const head = `GET /carts/1 HTTP/1.1\r\nHost: shop.example\r\n${more}\r\n`;
  const response = await exchangeRaw(port, head).catch(() => undefined);
  await expect.poll(() => inFlight.count).toBe(0);
  return { response, records, faults };
}

const none = {
  ...{ rejection: undefined, reason: undefined, observed: undefined, fault: undefined },
  ...{ route: '*', request: undefined, sender: undefined },
};
const answer = { status: 200, fields: ['Cache-Control', 'public, max-age=60'], body: 'whole' };

describe('an answer', () => {
  it('that a drain cuts is recorded with the fault "drain", and counted', async () => {
    context.cut.isDue = true;
    const { records: seen } = await play((exchange) => {
      exchange.conclude({ end: 'client-gone', status: 200 } as ForwardResult);
      exchange.response.destroy();
    });
    context.cut.isDue = false;
    expect(seen).toEqual([{ ...none, decision: 'aborted', status: 200, fault: 'drain' }]);
    expect(context.cut.requests).toBe(1);
  });

  it('is recorded with status 0 for a client that has left', async () => {
    const { response, records: seen } = await play((exchange) => {
      exchange.response.destroy();
      exchange.answer(answer);
    });
    expect(response).toBeUndefined();
    expect(seen).toEqual([{ ...none, decision: 'aborted', status: 0 }]);
  });

  it.each([
    ['Content-Length: 5\r\nExpect: 100-continue\r\n', 'close'],
    ['Content-Length: 100000\r\n', 'close'],
    ['', 'keep-alive'],
  ])('to a request with %j leaves the connection: %s', async (fields, connection) => {
    const { response } = await play((exchange) => exchange.answer(answer), fields);
    expect(response?.field('connection')).toBe(connection);
  });
});

describe('a refusal', () => {
  const sender = { subject: 'DE--21' };

  it('in observe mode is recorded with the result of the request, but only the first one', async () => {
    const { records: seen } = await play((exchange) => {
      exchange.observe(reject('insufficient-scope', { reason: 'first', sender } as never));
      exchange.observe(reject('overloaded', { reason: 'second', sender: { subject: 'other' } } as never));
      exchange.answer(answer);
    });
    expect(seen).toEqual([
      {
        ...{ ...none, decision: 'answered', status: 200, observed: 'insufficient-scope', reason: 'first' },
        sender: 'DE--21',
      },
    ]);
  });

  it('after the start of an answer cuts it', async () => {
    const { response, records: seen } = await play((exchange) => {
      exchange.response.writeHead(200, { 'Content-Length': '10' });
      exchange.response.write('half');
      exchange.refuse(reject('overloaded', { reason: 'late' }));
    });
    expect(response?.complete ?? false).toBe(false);
    expect(seen).toEqual([
      { ...none, decision: 'aborted', status: 0, rejection: 'overloaded', reason: 'late' },
    ]);
  });
});

describe('a forwarded request', () => {
  const send = (exchange: Exchange) => {
    exchange.response.writeHead(200, exchange.editResponse(answer.fields) as string[]);
    exchange.response.end('whole');
  };
  const cause = Object.assign(new Error(), { code: 'ECONNRESET' });

  it.each<[string, Partial<ForwardResult>, object]>([
    ['sent', { end: 'sent', status: 200 }, { decision: 'forwarded', status: 200 }],
    [
      'cut',
      { end: 'aborted', status: 200, cause } as never,
      { decision: 'aborted', status: 200, fault: 'ECONNRESET' },
    ],
    [
      'cut by us',
      { end: 'aborted', status: 200, fault: 'write-stall' } as never,
      { decision: 'aborted', status: 200, fault: 'write-stall' },
    ],
  ])('that was %s is recorded as it ended', async (_, result, recorded) => {
    const { records: seen } = await play((exchange) => {
      send(exchange);
      exchange.conclude(result as ForwardResult);
    });
    expect(seen).toEqual([{ ...none, ...recorded }]);
  });

  it('whose refusal throws is a fault', async () => {
    const { faults: heard } = await play((exchange) => {
      exchange.response.writeHead = () => {
        exchange.response.destroy();
        throw new Error('a bug');
      };
      const rejection = reject('upstream-unreachable', { reason: 'reset' });
      exchange.conclude({ end: 'rejected', status: 0, rejection } as never);
    });
    expect(heard).toMatchObject([['a bug', expect.any(String)]]);
  });
});
