import { byId, el, show } from './dom.js';

const verdicts = {
  protected: ['Protected', 'ok'],
  open: ['Open', 'limping'],
  refused: ['Refused', 'down'],
  'own-endpoint': ['Answered by shopward', 'ok'],
};

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
        el('pre', { tabindex: 0, 'aria-label': 'Explanation', role: 'region' }, explanation.text.join('\n')),
      );
    } catch (fault) {
      show(result, el('p', { class: 'fault' }, fault.message));
    }
  });
}
