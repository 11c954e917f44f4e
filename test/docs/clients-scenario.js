import { changeCart } from './change-cart.js';
import { renameCart } from './change-cart-axios.js';
import { readCached } from './read-cached.js';
import { refresh } from './refresh.js';
import { request } from './request.js';

const outcomeOf = ({ status, code, requestId }) => ({ status, code, hasRequestId: Boolean(requestId) });

/** Uses each snippet of docs/clients.md once, and tells what came of it. */
export async function run({ api, username, password, cart }) {
  const refused = await request(`${api}/carts/${cart}`).catch(outcomeOf);

  const { body } = await request(`${api}/access-tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/vnd.api+json' },
    body: JSON.stringify({ data: { type: 'access-tokens', attributes: { username, password } } }),
  });
  const { accessToken, refreshToken } = body.data.attributes;

  // Somebody else renames the cart between our reading and our first change.
  let edits = 0;
  const statuses = [];
  const plainFetch = globalThis.fetch;
  globalThis.fetch = async (url, init) => {
    if (init?.method === 'PATCH' && edits === 1) await renameCart(api, cart, accessToken, 'Somebody else');
    const response = await plainFetch(url, init);
    statuses.push(response.status);
    return response;
  };
  const changed = await changeCart(api, cart, accessToken, (now) => {
    edits += 1;
    return { name: `${now.name}, edited` };
  });
  const axiosTag = await renameCart(api, cart, accessToken, 'By axios');

  statuses.length = 0;
  const copies = new Map();
  const first = await readCached(copies, `${api}/carts/${cart}`, accessToken);
  const second = await readCached(copies, `${api}/carts/${cart}`, accessToken);
  const readings = [...statuses];
  globalThis.fetch = plainFetch;

  const [one, other] = await Promise.all([refresh(api, refreshToken), refresh(api, refreshToken)]);
  const usedAgain = await refresh(api, refreshToken).catch(outcomeOf);
  return {
    refused,
    edits,
    isNewTag: /^"/.test(changed.tag) && changed.cart.attributes.name === 'Somebody else, edited',
    axiosTag: axiosTag !== changed.tag && /^"/.test(axiosTag),
    readings,
    isSameCopy: first === second,
    isOnePair: one === other && one.refreshToken !== refreshToken,
    usedAgain,
  };
}
