import type { IncomingMessage } from 'node:http';
import type { Authenticate, Authenticated } from '../access/authenticate.ts';
import type { ProtectedList } from '../access/protected-list.ts';
import { type CanonicalRequest, isSafe } from '../http/canonical-request.ts';
import { editFields, fieldValue } from '../http/field-list.ts';
import type { RejectionName } from '../http/rejection.ts';
import { type Answer, isAnswer, isRejection, type Rejection, reject } from '../http/rejection.ts';
import type { Exchange } from '../server/exchange.ts';
import { beyondShare } from '../server/in-flight.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import type { UpstreamHooks } from '../upstream/hooks.ts';

type Eventually<T> = T | Promise<T>;
type Identity = Authenticated['identity'];

/** An endpoint that shopward answers itself; `undefined`: not this request. */
export interface OwnEndpoint {
  /** Template for log and metrics. */
  readonly route: string;
  answer(request: CanonicalRequest): Eventually<Answer | Rejection> | undefined;
}

/** A feature that has a say in a forwarded request: refresh tokens, entity tags. */
export interface Gate {
  /** Refuses a change for its form alone, before anybody is asked for a token. */
  refuseForm?(request: CanonicalRequest): Rejection | undefined;
  /** Whether the gate concerns itself with this request, and whether it wants the body whole. */
  concerns(request: CanonicalRequest, isObserved: boolean): false | 'head' | 'whole-body';
  /**
   * A refusal, an answer from what is stored, or what is wanted of the exchange with the upstream; in observe mode
   * beside the refusal that would have been: one that is returned holds in any mode.
   */
  begin(
    request: CanonicalRequest,
    identity: Identity | undefined,
    body: Buffer | undefined,
    isObserved: boolean,
  ): Eventually<(UpstreamHooks & { readonly observed?: Rejection }) | Answer | Rejection | undefined>;
}

export interface Rooms {
  canonicalise(incoming: IncomingMessage): CanonicalRequest | Rejection;
  readonly ownEndpoints: readonly OwnEndpoint[];
  /** The list as it stands now; a request keeps the one that it began with. */
  protectedList(): ProtectedList;
  readonly authenticate: Authenticate;
  /** The first that concerns itself with a request is asked; a change that concerns two is refused. */
  readonly gates: readonly Gate[];
  readBody(exchange: Exchange, request: CanonicalRequest): Promise<Buffer | Rejection>;
  readonly forwarder: Forwarder;
  /** The whole proxy is in observe mode: soft refusals are noted, and the request goes on. */
  readonly observe: boolean;
}

/**
 * What observe mode lets pass here; gates soften refusals of their own, so that a write still takes its lease. The
 * grammar of requests and the limits always hold.
 */
const softRejections: ReadonlySet<RejectionName> = new Set([
  'access-token-missing',
  'access-token-invalid',
  'insufficient-scope',
]);

/** Who may go on, and as whom. */
export interface Admission {
  /** With the verified credentials in their canonical spelling. */
  readonly request: CanonicalRequest;
  /** Undefined on an open route, and where observe mode let somebody unknown pass. */
  readonly identity: Identity | undefined;
  readonly isObserved: boolean;
}

/** What is noted of a request on its way. */
export interface Notes {
  route: string;
  observe(rejection: Rejection): void;
}

/**
 * One request, one straight line:
 * canonical request -> own endpoints -> protected? -> authenticate -> gate (precondition, token state) -> forward.
 */
export function createPipeline(rooms: Rooms): (exchange: Exchange) => void {
  return (exchange) => {
    const fail = (fault: unknown) => exchange.fail(fault);
    try {
      const pending = handle(rooms, exchange);
      if (pending instanceof Promise) pending.catch(fail);
    } catch (fault) {
      fail(fault);
    }
  };
}

/** What need not wait is done in this very call: most requests wait for nothing but the upstream. */
function handle(rooms: Rooms, exchange: Exchange): Eventually<void> {
  const request = rooms.canonicalise(exchange.incoming);
  if (isRejection(request)) return exchange.refuse(request);
  exchange.meet(request);
  if (!exchange.place.takeFor(request.clientAddress)) return exchange.refuse(beyondShare);

  const own = askOwnEndpoints(rooms, request, exchange);
  if (own !== undefined) {
    return own instanceof Promise ? own.then((late) => respond(exchange, late)) : respond(exchange, own);
  }

  const malformed = isSafe(request.method) ? undefined : refuseForm(rooms.gates, request);
  if (malformed !== undefined) return exchange.refuse(malformed);

  const admission = admit(rooms, request, exchange);
  return admission instanceof Promise
    ? admission.then((late) => proceed(rooms, exchange, late))
    : proceed(rooms, exchange, admission);
}

function refuseForm(gates: readonly Gate[], request: CanonicalRequest): Rejection | undefined {
  for (const gate of gates) {
    const refusal = gate.refuseForm?.(request);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** The answer of the first own endpoint that the request is for. */
export function askOwnEndpoints(
  { ownEndpoints }: Pick<Rooms, 'ownEndpoints'>,
  request: CanonicalRequest,
  notes: Pick<Notes, 'route'>,
): Eventually<Answer | Rejection> | undefined {
  for (const endpoint of ownEndpoints) {
    const answer = endpoint.answer(request);
    if (answer === undefined) continue;
    notes.route = endpoint.route;
    return answer;
  }
  return undefined;
}

function respond(exchange: Exchange, answer: Answer | Rejection): void {
  if (isRejection(answer)) exchange.refuse(answer);
  else exchange.answer(answer);
}

/** Protected? Then only with a valid access token that carries every scope. */
export function admit(
  rooms: Pick<Rooms, 'protectedList' | 'authenticate' | 'observe'>,
  request: CanonicalRequest,
  notes: Notes,
): Eventually<Admission | Rejection> {
  const requirement = rooms.protectedList().match(request);
  if (requirement === undefined) return { request, identity: undefined, isObserved: rooms.observe };
  notes.route = requirement.route;
  const isObserved = rooms.observe || requirement.observe;
  const conclude = (verdict: Authenticated | Rejection): Admission | Rejection => {
    if (!isRejection(verdict)) {
      return { request: withCredentials(request, verdict), identity: verdict.identity, isObserved };
    }
    if (!isObserved || !softRejections.has(verdict.rejection)) return verdict;
    notes.observe(verdict);
    return { request, identity: undefined, isObserved };
  };
  const pending = rooms.authenticate(request, requirement.scopes);
  return pending instanceof Promise ? pending.then(conclude) : conclude(pending);
}

/** Past authentication: the gate that concerns itself with the request, then the upstream. */
function proceed(rooms: Rooms, exchange: Exchange, admission: Admission | Rejection): Eventually<void> {
  if (isRejection(admission)) return exchange.refuse(admission);
  const { request, identity, isObserved } = admission;
  if (identity !== undefined && !exchange.place.takeForSubject(identity.subject)) {
    return exchange.refuse(beyondShare);
  }
  const met = findGate(rooms.gates, request, isObserved);
  if (isRejection(met)) return exchange.refuse(met);
  return met === undefined ? forward(rooms, exchange, request) : pass(rooms, exchange, admission, met);
}

async function pass(
  rooms: Rooms,
  exchange: Exchange,
  { request, identity, isObserved }: Admission,
  { gate, concern }: MetGate,
): Promise<void> {
  let body: Buffer | undefined;
  if (concern === 'whole-body') {
    const read = await rooms.readBody(exchange, request);
    if (isRejection(read)) return exchange.refuse(read);
    body = read;
  }
  const pending = gate.begin(request, identity, body, isObserved);
  const verdict = pending instanceof Promise ? await pending : pending;
  if (isRejection(verdict)) return exchange.refuse(verdict);
  if (isAnswer(verdict)) return exchange.answer(verdict);
  if (verdict?.observed !== undefined) exchange.observe(verdict.observed);
  await forward(rooms, exchange, request, body, verdict);
}

function forward(
  { forwarder }: Rooms,
  exchange: Exchange,
  request: CanonicalRequest,
  body?: Buffer,
  hooks?: UpstreamHooks,
): Promise<void> | undefined {
  const { incoming, response } = exchange;
  return forwarder.forward({ request, incoming, response, body, hooks }, exchange);
}

interface MetGate {
  readonly gate: Gate;
  readonly concern: 'head' | 'whole-body';
}

/**
 * The first gate that concerns itself with the request. A change that two gates would have to watch, such as one of
 * `/access-tokens/1/carts/2`, has no honest sender: asking only one of them would let it pass the other unseen.
 */
function findGate(
  gates: readonly Gate[],
  request: CanonicalRequest,
  isObserved: boolean,
): MetGate | Rejection | undefined {
  let met: MetGate | undefined;
  for (const gate of gates) {
    const concern = gate.concerns(request, isObserved);
    if (concern === false) continue;
    if (met !== undefined) return reject('lenient-spelling', { reason: 'two-gates' });
    met = { gate, concern };
    if (isSafe(request.method)) break;
  }
  return met;
}

/** What was verified is what goes on: the canonical spelling of the credentials. */
function withCredentials(
  request: CanonicalRequest,
  { canonicalAuthorization }: Authenticated,
): CanonicalRequest {
  if (fieldValue(request.fields, 'authorization') === canonicalAuthorization) return request;
  return { ...request, fields: editFields(request.fields, { Authorization: canonicalAuthorization }) };
}
