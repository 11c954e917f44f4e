import { createHash } from 'node:crypto';
import type { ShopSettings } from '../settings.ts';
import type { ShopState } from '../state.ts';
import type { Answer } from './call.ts';
import { refuse } from './shop-error.ts';

/*
 * The shop's own entity tags (setting `enforceTags`), with the weak points of a real shop: an MD5 of the attributes
 * of the answer, kept without an end; items do not count, changes that do not answer with one cart leave the tag as
 * it was, and check and write are two steps.
 */

const taggedType = 'carts';

export function checkIfMatch(
  state: ShopState,
  settings: ShopSettings,
  request: {
    readonly method: string;
    readonly type: string;
    readonly id: string | null;
    readonly ifMatch: string | undefined;
  },
): void {
  const isEnforced = settings.enforceTags && settings.tagMethods.includes(request.method);
  if (!isEnforced || request.type !== taggedType || request.id === null) return;
  if (request.ifMatch === undefined || request.ifMatch === '') refuse('ifMatchMissing');
  const given = request.ifMatch.replace(/^"+|"+$/g, '');
  if (given !== state.entityTags.get(request.id.toLowerCase())) refuse('ifMatchInvalid');
}

/** Answers with exactly one cart carry its tag: GET the stored one, POST and PATCH a new one. */
export function tagOf(
  state: ShopState,
  settings: ShopSettings,
  method: string,
  answer: Answer,
): string | undefined {
  const list = answer.data === undefined ? [] : [answer.data].flat();
  const [cart] = list;
  if (!settings.enforceTags || cart === undefined || list.length !== 1) return undefined;
  if (cart.type !== taggedType || cart.id === null || method === 'DELETE') return undefined;
  const key = cart.id.toLowerCase();
  const stored = method === 'GET' ? state.entityTags.get(key) : undefined;
  const tag = stored ?? createHash('md5').update(JSON.stringify(cart.attributes)).digest('hex');
  state.entityTags.set(key, tag);
  return `"${tag}"`;
}
