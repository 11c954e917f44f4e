import { describe, expect, it } from 'vitest';
import type { Requirement } from '../../../src/access/protected-list.ts';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { type Answer, isRejection, type Rejection, reject } from '../../../src/http/rejection.ts';
import type { Eventually } from '../../../src/lib/eventually.ts';
import type { Admission, Filter, FilterContext, Identity } from '../../../src/proxy/filter.ts';
import { Pipeline } from '../../../src/proxy/pipeline.ts';
import { type PlanRules, plan } from '../../../src/proxy/plan.ts';
import type { Exchange } from '../../../src/server/exchange.ts';
import { canonicaliseSample, sampleHead } from '../http/sample-request.ts';

/** The pipeline with made-up filters and exchanges: which filters are called, in which order, and the result. */
const identity: Identity = { subject: 'DE--21', clientId: undefined, scopes: [], expiresAtMs: 1 };
const requirement = { route: '/row', observe: false } as unknown as Requirement;
const refusal = reject('overloaded', { reason: 'made-up', retryAfterSeconds: 1 });
const answer = { status: 200, fields: [], body: 'here' };
const hooks = { bufferLimit: 0, onOutcome: async () => ({}) };

function requestOf(method: string, more: Partial<CanonicalRequest> = {}): CanonicalRequest {
  const request = canonicaliseSample(
    sampleHead({ method, url: '/a', fields: ['Authorization', 'bearer  t'] }),
  );
  if (isRejection(request)) throw new Error(JSON.stringify(request));
  return { ...request, ...more };
}

const post = requestOf('POST');
const good = { identity, request: post };
/** As the token filter passes it on. */
const verified = requestOf('POST', { fields: ['Host', 'a', 'Authorization', 'Bearer t'] });

function filterOf(name: string, more: Partial<Filter> = {}): Filter {
  return { name, match: () => true, describe: () => ({ text: name }), run: () => undefined, ...more };
}

function listOf(met: Requirement | undefined): PlanRules['list'] {
  return { inForce: { match: () => met, tokenParameters: [] } };
}

interface Scene {
  readonly request?: CanonicalRequest;
  readonly endpoints?: readonly Filter[];
  readonly filters?: readonly Filter[];
  /** Result of the token filter. Undefined: the route is open. */
  readonly token?: Eventually<Admission | Rejection>;
  readonly requirement?: Requirement;
  readonly observe?: boolean;
  readonly body?: Buffer | ReturnType<typeof reject>;
}

/** Runs one request; returns a line for each step. */
async function play(scene: Scene): Promise<string[]> {
  const { request = post, endpoints = [], filters = [], token, observe = false } = scene;
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const end = (what: string) => {
    done.push(what);
    over.resolve();
  };
  const exchange = {
    incoming: {} as never,
    slot: { takeFor: () => true, takeForSubject: () => true },
    route: '',
    sender: undefined,
    isPrivate: false,
    variesByCookie: false,
    responseFields: undefined,
    observe: ({ reason }: Rejection) => void done.push(`observed ${reason}`),
    refuse: ({ rejection, reason }: Rejection) => end(`refused ${rejection} ${reason}`),
    answer: ({ status }: Answer) => end(`answered ${status}`),
    fail: (fault: unknown) => end(`failed: ${(fault as Error).message}`),
  } as unknown as Exchange;
  const list = listOf(token === undefined ? undefined : (scene.requirement ?? requirement));
  new Pipeline({
    canonicalise: () => request,
    rules: { endpoints, filters, list, observe },
    authenticate: () => token as Admission,
    readBody: () => Promise.resolve(scene.body ?? Buffer.from('whole')),
    forward: (_exchange, sent, who, body, given) => {
      const credentials = sent.fields[sent.fields.indexOf('Authorization') + 1];
      end(`sent ${credentials}, ${who?.subject}, ${body}, ${given === undefined ? 'no hooks' : 'hooks'}`);
    },
  }).run(exchange);
  await over.promise;
  // A surplus step would come in this tick.
  await new Promise((resolve) => setImmediate(resolve));
  if (exchange.isPrivate) done.push('private');
  if (exchange.responseFields !== undefined) done.push(`with ${exchange.responseFields.join(': ')}`);
  return [exchange.route, ...done];
}

const late = <T>(value: T) => Promise.resolve(value);
const fails = () => Promise.reject(new Error('bug'));

describe('the plan of a request', () => {
  const gate = (name: string, more: Partial<Filter> = {}) => filterOf(name, { hooksUpstream: true, ...more });
  const open = { endpoints: [], list: listOf(undefined), observe: false };
  const rulesOf = (filters: readonly Filter[]) => ({ ...open, filters });
  const planned = (request: CanonicalRequest, filters: readonly Filter[]) => {
    const made = plan(request, rulesOf(filters));
    if (!('forward' in made)) throw new Error(JSON.stringify(made));
    return { names: made.filters.map(({ filter }) => filter.name), refusal: made.refusal };
  };

  it('takes the first of two hooking filters for a read, and refuses a change', () => {
    const both = [gate('one'), filterOf('plain'), gate('two')];
    for (const method of ['GET', 'HEAD']) {
      expect(planned(requestOf(method), both)).toEqual({ names: ['plain', 'one'], refusal: undefined });
    }
    expect(planned(post, both).refusal).toEqual(reject('lenient-spelling', { reason: 'two-gates' }));
    expect(planned(post, [gate('one'), gate('two', { match: () => undefined })]).refusal).toBeUndefined();
  });

  it.each([
    ['/a/own', true],
    ['/a/own/', true],
    ['/own', true],
    ['/', false],
    ['/a/own//', false],
    ['/own/a', false],
    ['/OWN', false],
  ])('%s: an endpoint with the path end "own" is asked: %s', (path, isAsked) => {
    const endpoints = [filterOf('own', { pathEnd: 'own' })];
    expect('endpoint' in plan({ ...requestOf('GET'), path }, { ...rulesOf([]), endpoints })).toBe(isAsked);
  });

  it.each<[string, Partial<CanonicalRequest>, boolean]>([
    ['GET', {}, false],
    ['HEAD', {}, false],
    ['GET', { query: '?' }, false],
    ['GET', { query: '?a' }, true],
    ['POST', {}, true],
    ['OPTIONS', {}, true],
    ['DELETE', {}, true],
  ])('%s %j: a filter that skips plain reads is asked: %s', (method, more, isAsked) => {
    const { names } = planned(requestOf(method, more), [filterOf('changes', { skipsPlainReads: true })]);
    expect(names).toEqual(isAsked ? ['changes'] : []);
  });

  it('puts a hooking filter last', () => {
    expect(planned(post, [filterOf('a'), gate('h'), filterOf('b')]).names).toEqual(['a', 'b', 'h']);
    expect(planned(post, [gate('h')]).names).toEqual(['h']);
  });
});

describe('the pipeline', () => {
  const sentOpen = 'sent bearer  t, undefined, undefined, no hooks';
  const sentVerified = 'sent Bearer t, DE--21, undefined, no hooks';
  const refused = 'refused overloaded made-up';
  const endpoint = (more: Partial<Filter>) => ({ endpoints: [filterOf('e', more)] });
  const filter = (more: Partial<Filter>) => ({ filters: [filterOf('a', more)] });
  const refusesLate = (reason: string) =>
    filterOf(reason, { run: () => late(reject('overloaded', { reason, retryAfterSeconds: 1 })) });

  it.each<[title: string, Scene, ...lines: string[]]>([
    ['an open route', {}, '*', sentOpen],
    ['an endpoint', endpoint({ route: '/e', run: () => answer }), '/e', 'answered 200'],
    ['an endpoint that is late', endpoint({ run: () => late(answer) }), '*', 'answered 200'],
    ['an endpoint that refuses', endpoint({ run: () => refusal }), '*', refused],
    ['an endpoint that refuses the form', endpoint({ match: () => refusal }), '', refused],
    ['an endpoint that hands on', endpoint({ route: '/e' }), '*', sentOpen],
    ['an endpoint that hands on late', endpoint({ run: () => late(undefined) }), '*', sentOpen],
    [
      'an endpoint that hands on a protected request: the token is read',
      { ...endpoint({ run: () => late(undefined) }), token: refusal },
      ...['/row', refused, 'private'],
    ],
    [
      'an endpoint that hands on what a filter refuses',
      { ...endpoint({}), ...filter({ match: () => refusal }) },
      ...['*', refused],
    ],
    ['an unmatched endpoint', endpoint({ match: () => undefined, run: () => answer }), '*', sentOpen],
    ['an unmatched filter', filter({ match: () => undefined, run: () => answer }), '*', sentOpen],
    [
      'a filter that refuses the form: no token is read',
      { token: good, ...filter({ match: () => refusal, run: () => answer }) },
      ...['', refused],
    ],
    ['a refused token', { token: refusal }, '/row', refused, 'private'],
    ['a token refused late', { token: late(refusal) }, '/row', refused, 'private'],
    [
      'a good token: its canonical spelling is sent',
      { token: { identity, request: verified } },
      ...['/row', sentVerified, 'private'],
    ],
    [
      'observe mode does not cover the refusal of a limit',
      { token: refusal, observe: true },
      ...['/row', refused],
    ],
    [
      'a good token, and the condition of a row that observes is not met',
      { token: { identity, request: verified, observed: refusal } },
      ...['/row', 'observed made-up', sentVerified, 'private'],
    ],
    ['credentials that the shop checks', { token: 'unjudged' }, '/row', sentOpen, 'private'],
    ['a filter that fails', filter({ run: fails }), '*', 'failed: bug'],
    [
      'no filter runs after one that refuses',
      {
        filters: [
          filterOf('a', { run: () => late({ observed: refusal }) }),
          ...[refusesLate('b'), filterOf('c', { run: () => answer })],
        ],
      },
      ...['*', 'observed made-up', 'refused overloaded b'],
    ],
    [
      'fields of the response: a later filter without fields keeps them',
      { filters: [filterOf('a', { run: () => ({ responseFields: ['X', '1'] }) }), filterOf('b')] },
      ...['*', sentOpen, 'with X: 1'],
    ],
    [
      'a token outside Authorization: answers and refusals are private',
      { token: refusal, requirement: { ...requirement, tokenIn: 'cookie' as never } },
      ...['/row', refused, 'private'],
    ],
    ['a filter that answers', filter({ run: () => answer }), '*', 'answered 200'],
    [
      'a filter with hooks',
      filter({ hooksUpstream: true, run: () => hooks }),
      ...['*', 'sent bearer  t, undefined, undefined, hooks'],
    ],
    [
      'undeclared hooks: nothing is sent',
      filter({ run: () => hooks }),
      ...['*', 'failed: a gives hooks, and does not say so'],
    ],
    [
      'two hooking filters: refused although the token is good',
      { token: good, filters: ['g', 'h'].map((name) => filterOf(name, { hooksUpstream: true })) },
      ...['/row', 'refused lenient-spelling two-gates', 'private'],
    ],
    [
      'a body that cannot be read: no filter runs',
      { body: refusal, ...filter({ wantsBody: () => true, run: () => answer }) },
      ...['*', refused],
    ],
  ])('%s', async (_, scene, ...lines) => {
    expect(await play(scene)).toEqual(lines);
  });

  it('an unknown result of the token filter: nothing is sent', async () => {
    const failed = expect.stringMatching(/^failed: /);
    expect(await play({ token: {} as never })).toEqual(['/row', failed, 'private']);
  });

  it('the body is read once, for the filter that wants it and all later ones', async () => {
    const bodies: string[] = [];
    const look = (name: string, wantsBody?: () => boolean) =>
      filterOf(name, {
        ...(wantsBody && { wantsBody }),
        run: (_match, { body, identity: who, isObserved }: FilterContext) => {
          bodies.push(`${name} ${body} ${who?.subject} ${isObserved}`);
          return undefined;
        },
      });
    let reads = 0;
    const body = Buffer.from('whole');
    const counted = () => ++reads > 0;
    const filters = [look('a', () => false), look('b', counted), look('c', counted), look('d')];
    const lines = await play({ token: good, filters, body, observe: true });
    expect(lines).toEqual(['/row', 'sent bearer  t, DE--21, whole, no hooks']);
    const seen = (name: string, what: string) => `${name} ${what} DE--21 true`;
    const whole = ['b', 'c', 'd'].map((name) => seen(name, 'whole'));
    expect(bodies).toEqual([seen('a', 'undefined'), ...whole]);
    expect(reads).toBe(1);
  });
});
