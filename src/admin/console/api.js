/** The admin port's JSON API and event stream, with the token where one is needed. */

const tokenName = 'shopward-admin-token';

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
      const response = await fetch(path, { ...options, headers }).catch((fault) => {
        if (options.signal?.aborted) throw fault;
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
    if (response.ok) return body;
    throw new ApiFault(response.status, body, body?.error ?? `the answer was ${response.status}`);
  };

  return {
    get: (path) => json(path),
    post: (path, body) =>
      json(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),

    /** Calls `onEvent(name, data)` for each server-sent event; resolves when the stream ends. */
    async follow(path, onEvent, signal) {
      const response = await request(path, { signal, headers: { Accept: 'text/event-stream' } });
      if (!response.ok || response.body === null) {
        throw new ApiFault(response.status, undefined, `the answer was ${response.status}`);
      }
      let rest = '';
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const events = (rest + value).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) tell(event, onEvent);
      }
    },
  };
}

function tell(event, onEvent) {
  let name = 'message';
  let data = '';
  for (const line of event.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (data !== '') onEvent(name, JSON.parse(data));
}
