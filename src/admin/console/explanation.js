import { byId, cut, el, show } from './dom.js';

const verdicts = {
  protected: ['Protected', 'ok'],
  open: ['Open', 'degraded'],
  refused: ['Refused', 'down'],
  'own-endpoint': ['Answered by shopward', 'ok'],
  'token-accepted': ['Token accepted', 'ok'],
  'token-refused': ['Token refused', 'down'],
};

/** A line of the text for terminals: a name in a column of its own, then what is said of it. */
function factElement(line) {
  const [, name = '', text = line.trim()] = /^ {2}(.{15}) (.*)$/s.exec(line) ?? [];
  return el('div', {}, el('dt', {}, name.trim()), el('dd', {}, cut(text, 600)));
}

/**
 * What `shopward explain` says of a request, or `shopward token` of a token, as elements. `question`: `method`, `url` (whatever
 * was pasted), perhaps `fields` (lines) and `body`. It is sent in the body of a POST, and kept nowhere.
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

/** Cause and cure of a reason; undefined for a word that has none. */
export async function reasonText(api, name) {
  reasons ??= api.get('api/reasons').catch(() => {
    reasons = undefined;
    return { reasons: [] };
  });
  return (await reasons).reasons.find((one) => one.name === name);
}

/** The box for what somebody pasted. */
export function startExplainBox(api) {
  const result = byId('explain-result');
  const text = byId('explain-url');
  // A path is one line; what was pasted with more of them keeps them.
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
  byId('explain-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const url = text.value.trim();
    if (url === '') return;
    try {
      show(result, await explainRequest(api, { method: byId('explain-method').value, url, ...more() }));
    } catch (fault) {
      show(result, el('p', { class: 'fault' }, fault.message));
    }
  });
}
