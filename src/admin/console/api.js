/** The admin port's JSON API, with the token where one is needed. */

const tokenName = 'shopward-admin-token';

/** A process that accepts requests and never responds must count as an outage. */
const timeoutMs = 15_000;
/** A POST may check and compare a list of thousands of rows. */
const postTimeoutMs = 120_000;

/** An open page uses at most this share of the proxy's time, however long the list is. */
const mostShare = 1 / 20;

/** A response that is not a success; `status` 0: there was no response. */
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

  /** Asks once for all requests that wait for a token. */
  const renewToken = (isRefused) => {
    asking ??= askToken(isRefused).then((token) => {
      sessionStorage.setItem(tokenName, token);
      asking = undefined;
    });
    return asking;
  };

  const request = async (path, options = {}) => {
    for (;;) {
      const token = sessionStorage.getItem(tokenName);
      const headers = { ...options.headers, ...(token !== null && { Authorization: `Bearer ${token}` }) };
      const signal = AbortSignal.timeout(options.method === 'POST' ? postTimeoutMs : timeoutMs);
      const response = await fetch(path, { ...options, headers, signal }).catch(() => {
        throw new ApiFault(0, undefined, 'shopward does not answer');
      });
      if (response.status !== 401) return response;
      // Another request may have got a new token meanwhile: try that token first.
      if (token === sessionStorage.getItem(tokenName)) await renewToken(token !== null);
    }
  };

  const json = async (path, options) => {
    const response = await request(path, options);
    const body = await response.json().catch(() => undefined);
    // A success that was cut off half-way counts as no response.
    if (response.ok && body === undefined) throw new ApiFault(0, undefined, 'shopward does not answer');
    if (response.ok) return body;
    throw new ApiFault(response.status, body, body?.error ?? `the answer was ${response.status}`);
  };

  /** Path without query -> the last full path, its answer, and until when the answer is reused. */
  const answers = new Map();
  /** As `get`, but reuses the last answer for twenty times as long as it took, unless `isStale`. */
  const getPaced = async (path, { isStale = false } = {}) => {
    const [key] = path.split('?');
    const known = answers.get(key);
    const beganMs = performance.now();
    if (known?.path === path && !isStale && beganMs < known.untilMs) return known.answer;
    const answer = await json(path);
    const endedMs = performance.now();
    answers.set(key, { path, answer, untilMs: endedMs + (endedMs - beganMs) / mostShare });
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
