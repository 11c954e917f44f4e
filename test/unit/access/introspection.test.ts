import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type IntrospectionOptions,
  introspectionComponent,
  TokenIntrospector,
} from '../../../src/access/introspection.ts';
import { faultText } from '../../../src/access/provider-fetch.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { eventually } from '../../harness/eventually.ts';
import { listen } from '../../harness/listen.ts';
import { serveJson } from './jwks-server.ts';

const nowSeconds = 1_700_000_000;
const active = {
  ...{ active: true, sub: 'DE--21', scope: 'customer', token_type: 'Bearer' },
  ...{ iss: 'https://id.example', aud: 'shop', exp: nowSeconds + 600, iat: nowSeconds - 10 },
};

interface Asked {
  readonly fields: IncomingMessage['headers'];
  readonly form: URLSearchParams;
}

/** A real endpoint whose answer a test chooses, and an introspector on clocks that move by hand. */
async function setUp(options: Partial<IntrospectionOptions> = {}) {
  const asked: Asked[] = [];
  let respond: (response: ServerResponse, form: URLSearchParams) => void = serveJson(active);
  const server = createServer(async (request, response) => {
    const form = new URLSearchParams(await text(request));
    asked.push({ fields: request.headers, form });
    respond(response, form);
  });
  const { url, close } = await listen(server);
  const clock = { nowMs: nowSeconds * 1000, monotonicMs: 5000 };
  const introspector = new TokenIntrospector({
    url: `${url}/introspect`,
    ...{
      credentials: { id: 'shop ward', secret: 'p:ä+ss word' },
      issuer: 'https://id.example',
      audience: 'shop',
    },
    ...{ subject: 'sub', clockToleranceMs: 5000, maxTokenAgeMs: 28_800_000, maxTokens: 100, connections: 4 },
    ...{ timeoutMs: 20_000, ttlMs: 30_000, inactiveTtlMs: 5_000, requireTokenType: true, maxAsking: 50 },
    now: () => clock.nowMs,
    monotonicNow: () => clock.monotonicMs,
    ...options,
  });
  onTestFinished(async () => {
    await introspector.close();
    await close();
  });
  return {
    asked,
    clock,
    introspector,
    server,
    answer(next: typeof respond) {
      respond = next;
    },
    /** Delays every answer except those about `known`; `release` sends the delayed ones, with `active`. */
    delay(known?: string) {
      const delayed: ServerResponse[] = [];
      respond = (response, form) =>
        form.get('token') === known ? serveJson(active)(response) : void delayed.push(response);
      return {
        until: (count: number) => eventually('the questions', () => delayed.length === count || undefined),
        release: () => delayed.forEach(serveJson(active)),
      };
    },
    pass(ms: number) {
      clock.nowMs += ms;
      clock.monotonicMs += ms;
    },
    say: async (token: string, client?: string) => word(await introspector.verify(token, client)),
  };
}

function word(verdict: object & { subject?: string }): string {
  if (!isRejection(verdict)) return String(verdict.subject);
  const { rejection, reason, retryAfterSeconds } = verdict;
  return [rejection, reason, retryAfterSeconds].filter((part) => part !== undefined).join(' ');
}

const noAnswer = 'keys-unavailable introspection 1';

describe('a request to the endpoint', () => {
  it('is a form with form-encoded Basic credentials; an active answer gives an identity', async () => {
    const { asked, introspector } = await setUp();
    expect(await introspector.verify('a+b/c~==')).toMatchObject({
      ...{ subject: 'DE--21', claimedSubject: 'DE--21', scopes: ['customer'] },
      expiresAtMs: (nowSeconds + 600) * 1000,
    });
    const form = { token: 'a+b/c~==', token_type_hint: 'access_token' };
    expect(Object.fromEntries(asked[0]?.form ?? [])).toEqual(form);
    const basic = Buffer.from('shop+ward:p%3A%C3%A4%2Bss+word').toString('base64');
    expect(asked[0]?.fields).toMatchObject({
      authorization: `Basic ${basic}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    });
  });

  it('uses the new secret after useSecret', async () => {
    const { asked, introspector, say } = await setUp();
    introspector.useSecret('next');
    await say('t');
    expect(asked[0]?.fields.authorization).toBe(`Basic ${Buffer.from('shop+ward:next').toString('base64')}`);
  });
});

describe('an answer', () => {
  it.each<[string, object, string]>([
    ['inactive', { active: false }, 'access-token-invalid inactive'],
    ['another issuer', { iss: 'https://other.example' }, 'access-token-invalid issuer'],
    ['an issuer that is a list', { iss: ['https://id.example'] }, 'access-token-invalid issuer'],
    ['no issuer', { iss: undefined }, 'DE--21'],
    ['another audience', { aud: 'other' }, 'access-token-invalid audience'],
    ['no audience', { aud: undefined }, 'access-token-invalid audience'],
    ['several audiences', { aud: ['x', 'shop'] }, 'DE--21'],
    ['expired', { exp: nowSeconds - 60 }, 'access-token-invalid expired'],
    ['exp as a text', { exp: '9999999999' }, 'access-token-invalid claims'],
    ['no exp', { exp: undefined }, 'DE--21'],
    ['an iat that is too old', { iat: nowSeconds - 90_000 }, 'access-token-invalid too-old'],
    ['no iat', { iat: undefined }, 'DE--21'],
    ['no sub', { sub: undefined, username: 'x' }, 'access-token-invalid subject'],
    ['token_type in lower case', { token_type: 'bearer' }, 'DE--21'],
    ['no token_type, as for a refresh token', { token_type: undefined }, 'access-token-invalid other-kind'],
    ['bound to a key', { token_type: 'DPoP' }, 'access-token-invalid other-kind'],
    ['token_type as a list', { token_type: ['Bearer'] }, 'access-token-invalid other-kind'],
    ['a refresh token of Keycloak', { typ: 'Refresh' }, 'access-token-invalid other-kind'],
    ['an id token', { typ: 'ID' }, 'access-token-invalid other-kind'],
    ['a refresh token of Hydra', { token_use: 'refresh_token' }, 'access-token-invalid other-kind'],
    ['an access token of Hydra', { token_use: 'access_token' }, 'DE--21'],
    // Only true and false are answers; anything else is a failure of the endpoint.
    ['active as a text', { active: 'true' }, noAnswer],
    ['active as a number', { active: 1 }, noAnswer],
    ['active missing', { active: undefined }, noAnswer],
    ['active null', { active: null }, noAnswer],
  ])('%s', async (_, more, expected) => {
    const { answer, say } = await setUp();
    answer(serveJson({ ...active, ...more }));
    expect(await say('t')).toBe(expected);
  });

  it.each<[string, object, string]>([
    ['a key in cnf', { cnf: { jkt: 'x'.repeat(43) } }, 'DE--21'],
    ['no cnf', {}, 'access-token-invalid other-kind'],
    ['null as cnf', { cnf: null }, 'access-token-invalid other-kind'],
    ['an object as token_type', { token_type: { toString: 1 } }, 'access-token-invalid other-kind'],
  ])('with proof: dpop and %s', async (_, more, expected) => {
    const { answer, say } = await setUp({ proof: 'dpop' });
    answer(serveJson({ ...active, token_type: 'DPoP', ...more }));
    expect(await say('t')).toBe(expected);
  });

  const text = JSON.stringify(active);
  it.each<[string, (response: ServerResponse) => void, string]>([
    ['HTML', (response) => response.end('<html>active: true</html>'), 'malformed'],
    ['a list', serveJson([active]), 'malformed'],
    ['a JSON text that is cut off', (response) => response.end(text.slice(0, -9)), 'malformed'],
    ['a broken connection', (response) => response.destroy(), 'unreachable ECONNRESET'],
    ['70 kB of JSON', serveJson({ ...active, x: 'x'.repeat(70_000) }), 'too-large'],
    ['a redirect', (response) => response.writeHead(307, { Location: '/elsewhere' }).end(text), 'redirect'],
    ['201', (response) => response.writeHead(201).end(text), 'status 201'],
    ['401', (response) => response.writeHead(401).end(), 'credentials'],
  ])('%s: keys-unavailable, and the token is accepted at the next good answer', async (_, respond, error) => {
    const { answer, introspector, say } = await setUp();
    answer(respond);
    expect(await say('t')).toBe(noAnswer);
    const counts = { questions: 1, failures: 1, active: 0, refused: 0 };
    expect(introspector.status()).toMatchObject({ ...counts, lastError: error });
    const { health } = introspectionComponent(introspector);
    expect(health?.()).toMatchObject({
      status: 'degraded',
      reasons: [expect.stringContaining(faultText(error))],
    });
    answer(serveJson(active));
    expect(await say('t')).toBe('DE--21');
    expect(health?.()).toMatchObject({ status: 'ok' });
  });
});

it('health: ok after four failures in a row, degraded after five, ok after an answer', async () => {
  const reported: unknown[] = [];
  const { answer, introspector, say } = await setUp({ onAnswer: (error) => void reported.push(error) });
  const { health } = introspectionComponent(introspector);
  await say('first');
  answer((response) => response.writeHead(403).end('blocked'));
  await say('blocked');
  expect(health?.()).toMatchObject({ status: 'ok', reasons: [] });
  expect(health?.().text).toMatch(/^the issuer answers, but not for the last token: credentials/);
  for (let i = 0; i < 3; i++) await say(`blocked ${i}`);
  expect(health?.().status).toBe('ok');
  await say('the fifth');
  expect(health?.()).toMatchObject({ status: 'degraded', reasons: [expect.stringContaining('credentials')] });
  answer(serveJson({ active: false }));
  await say('none');
  expect(health?.()).toMatchObject({ status: 'ok', text: 'the issuer answers' });
  expect(reported).toEqual([...new Array(5).fill(undefined), 'credentials', undefined]);
});

describe('the cache', () => {
  const inactive = 'access-token-invalid inactive';
  const cut = (response: ServerResponse) => void response.destroy();
  it.each<[string, object, (response: ServerResponse) => void, number, string]>([
    ['keeps an active token for ttlMs', active, serveJson({ active: false }), 30_000, inactive],
    [
      'keeps no token beyond its exp',
      { ...active, exp: nowSeconds + 10 },
      serveJson({ active: false }),
      10_000,
      inactive,
    ],
    ['keeps an active token for ttlMs in an outage, too', active, cut, 30_000, noAnswer],
    ['keeps a refused token for inactiveTtlMs', { active: false }, serveJson(active), 5_000, 'DE--21'],
  ])('%s', async (_, first, later, ms, expected) => {
    const { asked, answer, pass, say } = await setUp();
    answer(serveJson(first));
    const said = await say('t');
    answer(later);
    pass(ms - 1);
    expect([await say('t'), asked.length]).toEqual([said, 1]);
    pass(1);
    expect(await say('t')).toBe(expected);
  });

  it('keeps no answer with a ttlMs of 0, and never a failure', async () => {
    const { asked, say } = await setUp({ ttlMs: 0 });
    for (let i = 0; i < 3; i++) expect(await say('t')).toBe('DE--21');
    expect(asked).toHaveLength(3);
    const other = await setUp();
    other.answer((response) => response.destroy());
    expect(await other.say('t')).toBe(noAnswer);
    expect(other.introspector.status()).toMatchObject({ active: 0, refused: 0 });
  });

  it('keeps an active token for ttlMs even if the clock is set back', async () => {
    const { answer, clock, say } = await setUp();
    await say('t');
    answer(serveJson({ active: false }));
    clock.nowMs -= 3_600_000;
    clock.monotonicMs += 30_000;
    expect(await say('t')).toBe('access-token-invalid inactive');
  });

  it('keeps an active token while 30 refused ones fill their own limit of 10', async () => {
    const { asked, answer, introspector, say } = await setUp({ maxTokens: 10 });
    await say('good');
    answer(serveJson({ active: false }));
    for (let i = 0; i < 30; i++) await say(`bad${i}`);
    expect(introspector.status()).toMatchObject({ active: 1, refused: 10 });
    const before = asked.length;
    expect([await say('good'), asked.length]).toEqual(['DE--21', before]);
  });

  it('is empty after a reload, and ignores an answer to an earlier question', async () => {
    const { delay, asked, answer, introspector, say } = await setUp();
    await say('t');
    const { until, release } = delay();
    const late = say('u');
    await until(1);
    await introspectionComponent(introspector).reload?.();
    answer(serveJson({ active: false }));
    release();
    expect(await late).toBe('DE--21');
    expect(await say('t')).toBe('access-token-invalid inactive');
    expect(await say('u')).toBe('access-token-invalid inactive');
    expect(asked).toHaveLength(4);
  });
});

describe('under load', () => {
  it('20 requests with one token: one question', async () => {
    const { delay, asked, say } = await setUp();
    const { until, release } = delay();
    const words = Array.from({ length: 20 }, () => say('t'));
    await until(1);
    release();
    expect(new Set(await Promise.all(words))).toEqual(new Set(['DE--21']));
    expect(asked).toHaveLength(1);
  });

  it('12 questions: maxAsking of 10 are asked, over 3 connections; 2 are refused', async () => {
    const { delay, answer, asked, say, server } = await setUp({ maxAsking: 10, connections: 3 });
    const { until, release } = delay();
    const words = Array.from({ length: 12 }, (_, i) => say(`t${i}`, `client ${i}`));
    await until(3);
    const open = await new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
    expect([open, asked.length]).toEqual([3, 3]);
    answer(serveJson(active));
    release();
    const said = await Promise.all(words);
    expect(said.filter((one) => one === 'overloaded verifications 1')).toHaveLength(2);
    expect(said.filter((one) => one === 'DE--21')).toHaveLength(10);
  });

  it('a flood of unknown tokens does not delay a token whose last answer was active', async () => {
    const { delay, answer, pass, say } = await setUp({ maxAsking: 5, connections: 2 });
    expect(await say('known')).toBe('DE--21');
    pass(30_001);
    const { until, release } = delay('known');
    const words = Array.from({ length: 8 }, (_, i) => say(`t${i}`, `client ${i}`));
    await until(2);
    expect(await say('known')).toBe('DE--21');
    answer(serveJson(active));
    release();
    expect((await Promise.all(words)).filter((one) => one === 'DE--21')).toHaveLength(5);
  });

  it('during an outage a client has two questions at a time; known tokens and other clients pass', async () => {
    const { delay, asked, answer, say } = await setUp({ connections: 3 });
    await say('known');
    answer((response) => response.writeHead(500).end());
    for (let i = 0; i < 5; i++) expect(await say(`t${i}`)).toBe(noAnswer);
    const before = asked.length;
    const { until, release } = delay();
    const words = Array.from({ length: 50 }, (_, i) => say(`u${i}`));
    expect(await Promise.all(words.slice(2))).toEqual(new Array(48).fill(noAnswer));
    expect(await say('known')).toBe('DE--21');
    const other = say('v', 'another client');
    await until(3);
    expect(asked.length).toBe(before + 3);
    release();
    expect(await Promise.all([other, ...words.slice(0, 2)])).toEqual(new Array(3).fill('DE--21'));
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['refuses', (response) => response.writeHead(403).end('blocked')],
    ['fails on', (response) => response.writeHead(500).end()],
    ['hangs up on', (response) => response.destroy()],
    ['answers with HTML to', (response) => response.end('<html>')],
  ])('a good token passes after 12 tokens that the endpoint %s', async (_, poisoned) => {
    const { answer, say } = await setUp();
    const isBad = (form: URLSearchParams) => form.get('token')?.startsWith('../');
    answer((response, form) => (isBad(form) ? poisoned : serveJson(active))(response));
    for (let i = 0; i < 12; i++) expect(await say(`../etc/passwd${i}`)).toBe(noAnswer);
    expect(await say('good')).toBe('DE--21');
  });

  it('a lookup whose connection breaks is repeated once', async () => {
    const { answer, say } = await setUp();
    let broken = 0;
    answer((response) => (++broken === 2 ? serveJson(active)(response) : void response.destroy()));
    expect(await say('t')).toBe('DE--21');
    expect(await say('u')).toBe('keys-unavailable introspection 1');
    expect(broken).toBe(4);
  });
});

describe('the time for a lookup', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());
  const passed = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  it('a lookup that waits for the only connection gets half of the time, and ends at its own deadline', async () => {
    const { answer, asked, introspector, say } = await setUp({ connections: 1 });
    answer((response, form) => {
      if (form.get('token') === 'good') serveJson(active)(response);
    });
    const ended: string[] = [];
    const ask = async (token: string) => void ended.push(`${token}: ${await say(token, token)}`);
    const start = async (first: string, second: string) => {
      const before = asked.length;
      const both = Promise.all([ask(first), ask(second)]);
      await expect.poll(() => asked.length).toBe(before + 1);
      await passed(9_999);
      expect(asked).toHaveLength(before + 1);
      await passed(1);
      await expect.poll(() => asked.length).toBe(before + 2);
      return both;
    };
    const both = start('hanging', 'waiting');
    await expect.poll(() => asked.length).toBe(2);
    expect(ended).toEqual([`hanging: ${noAnswer}`]);
    await passed(10_000);
    await both;
    expect(ended).toEqual([`hanging: ${noAnswer}`, `waiting: ${noAnswer}`]);
    await start('hanging', 'good');
    expect(ended.slice(2)).toEqual([`hanging: ${noAnswer}`, 'good: DE--21']);
    expect(introspector.status()).toMatchObject({ questions: 4, failures: 3 });
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['no answer', () => {}],
    ['half an answer', (response) => void response.writeHead(200).write('{')],
    [
      // Node emits no event when it ends such a request.
      'a 101',
      ({ socket }) => void socket?.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    ],
  ])('keys-unavailable after the timeout: %s', async (_, respond) => {
    const { answer, asked, introspector, say } = await setUp();
    answer(respond);
    const said = say('t');
    await expect.poll(() => asked.length).toBe(1);
    await passed(20_000);
    expect(await said).toBe(noAnswer);
    expect(introspector.status().lastError).toBe('timeout');
  });
});
