import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { defaultCustomerReference } from '../data/ids.ts';
import { cartRoutes } from '../resources/carts.ts';
import { catalogueRoutes } from '../resources/catalogue.ts';
import { customerRoutes } from '../resources/customers.ts';
import { listRoutes } from '../resources/lists.ts';
import { orderRoutes } from '../resources/orders.ts';
import { tokenRoutes } from '../resources/tokens.ts';
import { urlResolverRoute } from '../resources/url-resolver.ts';
import { readBearer } from '../tokens.ts';
import { PlainRefusal, refuse } from './refusals.ts';
import { localeOf, type ResourcePair, type ShopRequest } from './request.ts';
import type { Action, Answer, ResourceCall, ResourceRoute, Shop, ShopMethod } from './resource.ts';
import { type Attributes, isRecord, validateAttributes } from './rules.ts';

/** Every route of the shop. */
const routes: readonly ResourceRoute[] = [
  ...[customerRoutes, cartRoutes, orderRoutes, listRoutes, catalogueRoutes, tokenRoutes].flat(),
  urlResolverRoute,
];

export type Match = { readonly route: ResourceRoute; readonly action: Action; readonly template: string };

/**
 * Finds a route as a real shop does, aliases included: the LAST pair is the resource. For a route without a parent, the
 * first pair must have its type. For a route with a parent, the first pair must be the parent and the second must have its
 * type; a path without the parent finds it, too. So `/carts/x/carts/ID` acts on cart ID.
 */
export function findRoute(method: string, pairs: readonly ResourcePair[]): Match | null {
  const [first, second] = pairs;
  const last = pairs.at(-1);
  const isNested = pairs.length > 1;
  const named = routes.filter(({ type, parent }) => {
    if (type !== last?.type) return false;
    return parent === undefined || !isNested || pairs.some((pair) => pair.type === parent);
  });
  // If several routes have one type, a nested path selects the nested ones, a plain path the others.
  const candidates = named.filter(({ parent }) => named.length === 1 || (parent !== undefined) === isNested);
  const route = candidates.find(({ type, parent }) => {
    if (parent === undefined || !isNested) return first?.type === type;
    return first?.type === parent && second?.type === type;
  });
  const action = route?.methods[method as ShopMethod];
  if (route === undefined || action === undefined || (method === 'POST' && last?.id !== null)) return null;
  // Known names only, whatever the path was, because counters use this text.
  const parent = isNested && route.parent !== undefined ? `/${route.parent}/{id}` : '';
  const template = `${method} ${parent}/${route.type}${last?.id === null ? '' : '/{id}'}`;
  return { route, action, template };
}

const corsFields = [
  ...['accept', 'content-type', 'content-language', 'accept-language', 'authorization'],
  'x-anonymous-customer-unique-id',
];

/**
 * Fields of a preflight answer. OPTIONS is always routed and never authenticated. A real shop compares list items without
 * trimming them.
 */
export function answerPreflight(type: string, fields: IncomingHttpHeaders): Record<string, string> {
  const method = fields['access-control-request-method'];
  const names = fields['access-control-request-headers'];
  if (!fields.origin || !method || !names) throw new PlainRefusal(501, 'Not implemented.');
  const own = routes.filter((route) => route.type === type);
  const methods = [...new Set([...own.flatMap((route) => Object.keys(route.methods)), 'OPTIONS'])];
  const isAllowed = names.split(',').every((name) => corsFields.includes(name.toLowerCase()));
  if (!methods.includes(method) || !isAllowed) throw new PlainRefusal(403, 'Not allowed.');
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': corsFields.join(', '),
  };
}

/** Answers one request, with the checks in the order of a real shop: fields, body, id, identity, attributes, If-Match. */
export async function dispatch(shop: Shop, request: ShopRequest, { action, route }: Match) {
  checkFields(request);
  const call = createCall(shop, request, readJsonApi(request, action, route.type));
  checkIds(request, action);
  checkIdentity(call, request.pairs[0]?.type ?? '');
  validateAttributes(call.attributes, action.attributes ?? {});
  if (route.type === taggedType) checkIfMatch(call, request);
  const answer = await action.handle(call);
  const etag = tagOf(call, request.method, answer);
  return { answer: { ...answer, fields: { ...answer.fields, ...(etag && { etag }) } }, call };
}

function checkFields({ fields }: ShopRequest): void {
  if (!fields.accept) throw new PlainRefusal(406, 'Not acceptable.');
  if (fields['content-type'] === '') throw new PlainRefusal(415, 'Unsupported media type.');
  if (/;\s*version=/i.test(fields['content-type'] ?? '')) refuse('notFound');
}

type JsonApiBody = { readonly attributes: Attributes; readonly bodyIds: readonly string[] };

/** POST and PATCH must name the route's type in `data`; a DELETE may name one or several resources there. */
function readJsonApi({ method, json }: ShopRequest, action: Action, type: string): JsonApiBody {
  const isDelete = method === 'DELETE';
  if (action.isForm || method === 'GET' || (isDelete && !action.idInBody))
    return { attributes: {}, bodyIds: [] };
  const data = isRecord(json) ? json.data : undefined;
  const fitting = [data].flat().filter((each) => isRecord(each) && each.type === type) as Attributes[];
  if (!isDelete && !isRecord(data)) refuse('invalidBody');
  if (!isDelete && fitting.length === 0) refuse('invalidType');
  const bodyIds = fitting.map(({ id }) => id).filter((id) => typeof id === 'string');
  const [{ attributes } = {}] = isDelete ? [] : fitting;
  return { attributes: isRecord(attributes) ? attributes : {}, bodyIds };
}

/** Refuses PATCH and DELETE if an id is missing or empty. */
function checkIds({ method, pairs }: ShopRequest, action: Action): void {
  if (method !== 'PATCH' && method !== 'DELETE') return;
  const named = action.idInBody && pairs.at(-1)?.id === null ? pairs.slice(0, -1) : pairs;
  if (named.some(({ id }) => !id)) refuse('idMissing');
}

function checkIdentity({ anonymousId, hasBearer }: ResourceCall, firstType: string): void {
  if (firstType.startsWith('guest-') && anonymousId === '') refuse('anonymousIdMissing');
  if (hasBearer && anonymousId !== '') refuse('loggedInAndAnonymous');
}

function createCall(shop: Shop, request: ShopRequest, body: JsonApiBody): ResourceCall {
  const { method, pairs, fields, query, form } = request;
  const bearer = readBearer(fields.authorization);
  const user = bearer ?? { reference: defaultCustomerReference, idCompanyUser: null };
  const anonymousId = String(fields['x-anonymous-customer-unique-id'] ?? '');
  return {
    ...{ ...shop, ...body, query, form, user, anonymousId },
    method: method as ShopMethod,
    hasBearer: bearer !== null,
    owner: anonymousId === '' ? user.reference : `anonymous:${anonymousId}`,
    id: pairs.at(-1)?.id ?? null,
    parents: new Map(pairs.slice(0, -1).map(({ type, id }) => [type, id ?? ''])),
    locale: localeOf(fields),
    store: String(fields.store ?? query.values.get('_store') ?? 'DE'),
  };
}

/**
 * The shop's own entity tags (setting `enforceTags`), with the weaknesses of a real shop: a tag is the MD5 of the
 * attributes in an answer, and is never deleted; items do not count; a change whose answer is not one cart leaves the tag
 * unchanged; check and write are two steps.
 */
const taggedType = 'carts';

function checkIfMatch({ state, settings, id }: ResourceCall, { method, fields }: ShopRequest): void {
  if (!settings.enforceTags || !settings.tagMethods.includes(method) || id === null) return;
  const given = fields['if-match'] || refuse('ifMatchMissing');
  if (given.replace(/^"+|"+$/g, '') !== state.entityTags.get(id.toLowerCase())) refuse('ifMatchInvalid');
}

/** An answer with exactly one cart carries its tag: GET the stored one, POST and PATCH a new one. */
function tagOf({ state, settings }: ResourceCall, method: string, { data = [] }: Answer): string | undefined {
  const [cart, ...others] = [data].flat();
  if (!settings.enforceTags || cart?.type !== taggedType || cart.id === null || others.length > 0)
    return undefined;
  const key = cart.id.toLowerCase();
  const stored = method === 'GET' ? state.entityTags.get(key) : undefined;
  const tag = stored ?? createHash('md5').update(JSON.stringify(cart.attributes)).digest('hex');
  state.entityTags.set(key, tag);
  return `"${tag}"`;
}
