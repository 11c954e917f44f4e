import type { IncomingHttpHeaders } from 'node:http';
import type { ShopSettings } from '../settings.ts';
import type { ShopState } from '../state.ts';
import { type IssueToken, readBearer } from '../tokens/access-token.ts';
import type { RefreshTokens } from '../tokens/refresh-token.ts';
import { validateAttributes } from './attributes.ts';
import type { Action, Answer, ResourceCall } from './call.ts';
import { emptyBody, type JsonApiBody, readLinkedIds, readResourceBody } from './json-api-body.ts';
import { negotiateLocale } from './locale.ts';
import type { PhpParameters } from './php-query.ts';
import type { RequestBody } from './request-body.ts';
import type { ResourcePair } from './resource-path.ts';
import type { Match } from './router.ts';
import { PlainRefusal, refuse } from './shop-error.ts';
import { checkIfMatch, tagOf } from './shop-tags.ts';

export type Shop = {
  readonly state: ShopState;
  readonly settings: ShopSettings;
  readonly stopping: AbortSignal;
  readonly issueToken: IssueToken;
  readonly refreshTokens: RefreshTokens;
};

export type ShopRequest = {
  readonly method: string;
  readonly pairs: readonly ResourcePair[];
  readonly query: PhpParameters;
  readonly fields: IncomingHttpHeaders;
  readonly body: RequestBody;
};

/** One request, in the order in which a real shop checks it: body, id, headers, attributes, If-Match, then the work. */
export async function dispatch(
  shop: Shop,
  request: ShopRequest,
  match: Match,
): Promise<{ answer: Answer; call: ResourceCall }> {
  const { action, route } = match;
  checkFields(shop.settings, request);
  const body = readJsonApi(request, action, route.type);
  checkIds(request, action);
  const call = createCall(shop, request, body);
  checkIdentity(call, request.pairs[0]?.type ?? '');
  if (action.attributes !== undefined) validateAttributes(body.attributes, action.attributes);
  const { method } = request;
  checkIfMatch(shop.state, shop.settings, {
    method,
    type: route.type,
    id: call.id,
    ifMatch: request.fields['if-match'],
  });
  const answer = await action.handle(call);
  const tag = tagOf(shop.state, shop.settings, method, answer);
  return {
    answer: tag === undefined ? answer : { ...answer, fields: { ...answer.fields, etag: tag } },
    call,
  };
}

function checkFields(settings: ShopSettings, { fields }: ShopRequest): void {
  if (settings.requireAccept && !fields.accept) throw new PlainRefusal(406, 'Not acceptable.');
  if (fields['content-type'] === '') throw new PlainRefusal(415, 'Unsupported media type.');
  if (/;\s*version=/i.test(fields['content-type'] ?? '')) refuse('notFound');
}

function readJsonApi({ method, body }: ShopRequest, action: Action, type: string): JsonApiBody {
  if (action.isForm || method === 'GET') return emptyBody;
  if (method === 'DELETE') return action.idInBody ? readLinkedIds(body.json, type) : emptyBody;
  return readResourceBody(body.json, type);
}

/** PATCH and DELETE with no id or an empty one anywhere. */
function checkIds({ method, pairs }: ShopRequest, action: Action): void {
  if (method !== 'PATCH' && method !== 'DELETE') return;
  const isMissing = ({ id }: ResourcePair) => id === null || id === '';
  const named = action.idInBody && pairs.at(-1)?.id === null ? pairs.slice(0, -1) : pairs;
  if (named.some(isMissing)) refuse('idMissing');
}

function checkIdentity(call: ResourceCall, firstType: string): void {
  const isGuestRoute = firstType === 'guest-carts' || firstType === 'guest-cart-items';
  if (isGuestRoute && call.anonymousId === '') refuse('anonymousIdMissing');
  if (call.hasBearer && call.anonymousId !== '') refuse('loggedInAndAnonymous');
}

function createCall(shop: Shop, request: ShopRequest, body: JsonApiBody): ResourceCall {
  const { pairs, fields, query } = request;
  const bearer = readBearer(fields.authorization);
  return {
    ...shop,
    user: bearer ?? { reference: shop.settings.defaultCustomer, idCompanyUser: null },
    hasBearer: bearer !== null,
    anonymousId: String(fields['x-anonymous-customer-unique-id'] ?? ''),
    id: pairs.at(-1)?.id ?? null,
    parents: new Map(pairs.slice(0, -1).map(({ type, id }) => [type, id ?? ''])),
    query,
    fieldsOf: (type) => {
      const wanted = query.items.get(`fields[${type}]`);
      return wanted === undefined ? undefined : new Set(wanted.split(','));
    },
    form: request.body.form,
    attributes: body.attributes,
    bodyIds: body.ids,
    locale: negotiateLocale(fields['accept-language']),
    store: String(fields.store ?? query.values.get('_store') ?? 'DE'),
  };
}
