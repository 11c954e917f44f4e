import { byId, cut, docLink, el, show, withCode, withDocLinks } from './dom.js';

const verdicts = {
  protected: ['Protected', 'ok'],
  open: ['Open', 'degraded'],
  refused: ['Refused', 'down'],
  'own-endpoint': ['Answered by shopward', 'ok'],
  'token-accepted': ['Token accepted', 'ok'],
  'token-refused': ['Token refused', 'down'],
  unreadable: ['Not readable', 'degraded'],
};

/** A line of the explanation as in a terminal: a name in a column of 15, then its value. */
function factElement(line) {
  const [, name = '', text = line.trim()] = /^ {2}(.{15}) (.*)$/s.exec(line) ?? [];
  return el('div', {}, el('dt', {}, name.trim()), el('dd', {}, withDocLinks(cut(text, 600))));
}

/**
 * The output of `shopward explain` for a request, or of `shopward token` for a token, as elements. `question`: `url` (whatever
 * was pasted), optionally `method`, `fields` (lines) and `body`. Sent in the body of a POST, because it may contain a token.
 */
export async function explainRequest(api, question) {
  const { verdict, text } = await api.post('api/explain', question);
  const [word, status] = verdicts[verdict] ?? [verdict, 'off'];
  return [
    el('p', {}, el('span', { class: 'pill', 'data-status': status }, word)),
    el('p', { class: 'request' }, el('code', {}, cut(text[0] ?? ''))),
    el('dl', { class: 'explanation' }, text.slice(1).map(factElement)),
  ];
}

let reasons;

/** Cause and cure as paragraphs, with a link to their row in docs/reasons.md. */
export function reasonParagraphs({ name, cause, cure }) {
  return [
    el('p', {}, el('b', {}, cure ? 'Why: ' : `${name}: `), withCode(cause)),
    cure && el('p', {}, el('b', {}, 'What to do: '), withCode(cure)),
    el('p', {}, docLink(`docs/reasons.md#${name}`)),
  ];
}

/** Cause and cure from docs/reasons.md: of the detail, if a bad token or proof has one there, else of the name. */
export async function reasonText(api, name, detail) {
  reasons ??= api.get('api/reasons').catch(() => {
    reasons = undefined;
    return { reasons: [] };
  });
  const known = (await reasons).reasons;
  const ofToken =
    ['access-token-invalid', 'proof-invalid'].includes(name) && known.find((one) => one.name === detail);
  const general = known.find((one) => one.name === name);
  return ofToken || general;
}

/** A HAR file, or one entry, without unneeded parts: responses, times and lists of cookies stay in the tab. */
function withoutAnswers(text) {
  const document = parseObject(text);
  const entries = document?.log?.entries;
  if (Array.isArray(entries)) return JSON.stringify({ log: { entries: entries.map(bareEntry) } });
  return Array.isArray(document?.request?.headers) ? JSON.stringify(bareEntry(document)) : text;
}

function bareEntry(entry) {
  const { request, response } = entry ?? {};
  const { method, url, headers, postData } = request ?? {};
  return {
    request: { method, url, headers, postData: postData && bareBody(postData) },
    response: { status: response?.status },
  };
}

/** A HAR entry may have the fields of a form only in `params`. */
function bareBody({ text, mimeType, params }) {
  return { text, mimeType, params };
}

function parseObject(text) {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The form that explains a pasted request or token. */
export function startExplainBox(api) {
  const result = byId('explain-result');
  const text = byId('explain-url');
  // Enter submits, as in a one-line field; pasted text may have several lines.
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    byId('explain-form').requestSubmit();
  });
  const more = () => {
    const fields = byId('explain-fields')
      .value.split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    const body = byId('explain-body').value;
    return { ...(fields.length > 0 && { fields }), ...(body !== '' && { body }) };
  };
  /** Answers may arrive out of order: only the answer to the last question counts. */
  let asked = 0;
  byId('explain-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const url = withoutAnswers(text.value.trim());
    if (url === '') return;
    const method = byId('explain-method').value;
    const number = ++asked;
    const explained = await explainRequest(api, { ...(method !== '' && { method }), url, ...more() }).catch(
      (fault) => el('p', { class: 'fault' }, fault.message),
    );
    if (number === asked) show(result, explained);
  });
}
