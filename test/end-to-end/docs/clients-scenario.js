import { ApiError } from './api-error.js';
import { changeCart } from './change-cart.js';
import { changeCart as changeCartByAxios } from './change-cart-axios.js';
import { createClient } from './client-axios.js';
import { readCached } from './read-cached.js';
import { refresh } from './refresh.js';
import { createSignedInClient } from './refresh-axios.js';
import { request } from './request.js';

const outcomeOf = (error) => {
  if (!(error instanceof ApiError)) throw error;
  const { status, code, reason, requestId } = error;
  return { status, code, reason: reason ?? null, hasRequestId: Boolean(requestId) };
};

/** Uses each snippet of docs/clients.md once, and returns the outcomes. */
export async function run({ api, username, password, cart }) {
  const refused = await request(`${api}/carts/${cart}`).catch(outcomeOf);
  const refusedByAxios = await createClient(api).get(`/carts/${cart}`).catch(outcomeOf);

  const { body } = await request(`${api}/access-tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/vnd.api+json' },
    body: JSON.stringify({ data: { type: 'access-tokens', attributes: { username, password } } }),
  });
  const { accessToken, refreshToken } = body.data.attributes;
  const headers = { Authorization: `Bearer ${accessToken}` };
  const client = createSignedInClient(api, { accessToken, refreshToken: 'not asked for yet' });

  const json = { 'Content-Type': 'application/vnd.api+json' };
  const data = { data: { type: 'carts', id: cart, attributes: { name: 'x' } } };
  const init = { method: 'PATCH', headers: { ...headers, ...json }, body: JSON.stringify(data) };
  const untagged = await request(`${api}/carts/${cart}`, init).catch(outcomeOf);
  const untaggedByAxios = await client.patch(`/carts/${cart}`, data, { headers: json }).catch(outcomeOf);

  // Another client, with the other library, changes the cart between our read and our first change.
  let edits = 0;
  const meddle = (now) => {
    edits += 1;
    return { name: `${now.name}, edited` };
  };
  const plainFetch = globalThis.fetch;
  let isMeddled = false;
  globalThis.fetch = async (url, options) => {
    if (options?.method === 'PATCH' && !isMeddled) {
      isMeddled = true;
      await changeCartByAxios(client, cart, () => ({ name: 'By axios' }));
    }
    return plainFetch(url, options);
  };
  const byFetch = await changeCart(api, cart, accessToken, meddle);
  globalThis.fetch = plainFetch;

  let editsByAxios = 0;
  const meddled = createSignedInClient(api, { accessToken, refreshToken: 'not asked for yet' });
  meddled.interceptors.request.use(async (config) => {
    if (config.method === 'patch' && editsByAxios === 1)
      await changeCart(api, cart, accessToken, () => ({ name: 'By fetch' }));
    return config;
  });
  const byAxios = await changeCartByAxios(meddled, cart, (now) => {
    editsByAxios += 1;
    return { name: `${now.name}, edited` };
  });

  const statuses = [];
  globalThis.fetch = async (url, options) => {
    const response = await plainFetch(url, options);
    statuses.push(response.status);
    return response;
  };
  const copies = new Map();
  const first = await readCached(copies, `${api}/carts/${cart}`, accessToken);
  const second = await readCached(copies, `${api}/carts/${cart}`, accessToken);
  globalThis.fetch = plainFetch;

  const [one, other] = await Promise.all([refresh(api, refreshToken), refresh(api, refreshToken)]);
  const usedAgain = await refresh(api, refreshToken).catch(outcomeOf);

  // A client with an invalid access token: two requests cause one refresh, and both are served.
  const tokens = { accessToken: `${one.accessToken.slice(0, -9)}AAAAAAAAA`, refreshToken: one.refreshToken };
  const late = createSignedInClient(api, tokens);
  const both = await Promise.all([late.get(`/carts/${cart}`), late.request({ url: '/carts' })]);
  const spent = createSignedInClient(api, { accessToken: 'spent', refreshToken: one.refreshToken });
  const spentByAxios = await spent.get(`/carts/${cart}`).catch(outcomeOf);
  return {
    refused,
    refusedByAxios,
    untagged,
    untaggedByAxios,
    edits: [edits, editsByAxios],
    names: [byFetch, byAxios].map((each) => each.cart.attributes.name),
    areTags: [byFetch.tag, byAxios.tag].every((tag) => /^"/.test(tag)) && byFetch.tag !== byAxios.tag,
    readings: statuses,
    isSameCopy: first === second,
    isOnePair: one === other && one.refreshToken !== refreshToken,
    usedAgain,
    refreshedByAxios: [...both.map(({ status }) => status), tokens.refreshToken !== one.refreshToken],
    spentByAxios,
  };
}
