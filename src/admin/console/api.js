/** The admin port's JSON API, with the token where one is needed. */

const tokenName = 'shopward-admin-token';

/** A process that takes a request and says nothing must not look like one that is well. */
const patienceMs = 15_000;
/** A list of thousands of rows takes a while to be checked and compared. */
const longPatienceMs = 120_000;

/** A page that is open costs the proxy no more than this share of its time, however long the list is. */
const mostShare = 1 / 20;

/** An answer that is no success; `status` 0: there was none. */
export class ApiFault extends Error {
  constructor(status, body, text) {
    super(text);
    this.status = status;
    this.body = body;
  }
}

/** @param {(isWrong: boolean) => Promise<string>} askToken */
export function createApi(askToken) {
  let asking;

  /** One question for all who need the token at once. */
  const renewToken = (refused) => {
    asking ??= askToken(refused !== null).then((token) => {
      sessionStorage.setItem(tokenName, token);
      asking = undefined;
    });
    return asking;
  };

  const request = async (path, options = {}) => {
    for (;;) {
      const token = sessionStorage.getItem(tokenName);
      const headers = { ...options.headers, ...(token !== null && { Authorization: `Bearer ${token}` }) };
      const signal = AbortSignal.timeout(options.method === 'POST' ? longPatienceMs : patienceMs);
      const response = await fetch(path, { ...options, headers, signal }).catch(() => {
        throw new ApiFault(0, undefined, 'shopward does not answer');
      });
      if (response.status !== 401) return response;
      // Somebody else may have been asked meanwhile.
      if (token === sessionStorage.getItem(tokenName)) await renewToken(token);
    }
  };

  const json = async (path, options) => {
    const response = await request(path, options);
    const body = await response.json().catch(() => undefined);
    // What broke off half-way is no answer.
    if (response.ok && body === undefined) throw new ApiFault(0, undefined, 'shopward does not answer');
    if (response.ok) return body;
    throw new ApiFault(response.status, body, body?.error ?? `the answer was ${response.status}`);
  };

  /** Path without its query -> what was asked of it last, the answer, and from when on it is asked again. */
  const answers = new Map();
  /** As `get`; but what took long is asked for less often, and the last answer is given until then. `isStale`: not now. */
  const getPaced = async (path, { isStale = false } = {}) => {
    const [place] = path.split('?');
    const known = answers.get(place);
    const beganMs = performance.now();
    if (known?.path === path && !isStale && beganMs < known.untilMs) return known.answer;
    const answer = await json(path);
    const endedMs = performance.now();
    answers.set(place, { path, answer, untilMs: endedMs + (endedMs - beganMs) / mostShare });
    return answer;
  };

  return {
    get: (path) => json(path),
    getPaced,
    post: (path, body) =>
      json(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
  };
}
