import { byId, el, show } from './dom.js';

const verdicts = {
  protected: ['Protected', 'ok'],
  open: ['Open', 'limping'],
  refused: ['Refused', 'down'],
  'own-endpoint': ['Answered by shopward', 'ok'],
};

/** A line of the text for terminals: a name in a column of its own, then what is said of it. */
function factElement(line) {
  const [, name = '', text = line.trim()] = /^ {2}(.{15}) (.*)$/s.exec(line) ?? [];
  return el('div', {}, el('dt', {}, name.trim()), el('dd', {}, text));
}

/** The explain box: what `shopward explain` says, under the list in force. */
export function startExplain(api) {
  const result = byId('explain-result');
  byId('explain-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const method = byId('explain-method').value;
    const url = byId('explain-url').value.trim();
    if (url === '') return;
    try {
      const explanation = await api.post('api/explain', { method, url });
      const [word, status] = verdicts[explanation.verdict] ?? [explanation.verdict, 'off'];
      show(
        result,
        el('p', {}, el('span', { class: 'pill', 'data-status': status }, word)),
        el('p', { class: 'request' }, el('code', {}, explanation.text[0] ?? '')),
        el('dl', { class: 'explanation' }, explanation.text.slice(1).map(factElement)),
      );
    } catch (fault) {
      show(result, el('p', { class: 'fault' }, fault.message));
    }
  });
}
