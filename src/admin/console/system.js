import { confirmAction } from './dialogs.js';
import { byId, cut, el, renew, say } from './dom.js';
import { ago, bytes, count, fullTime, plural, sentence, span, statusWords } from './words.js';

/** Components, processes, keys; and the purge of the resolver's cache. */
export function startSystem(api) {
  startPurge(api);
  return {
    show() {},
    async refresh(state) {
      showTiles(state);
      showSystem(await api.get('api/system'), state);
    },
  };
}

function showTiles({ parts, nowMs, incidents }) {
  const sinceOf = ({ id }) => incidents.find((one) => one.id === id)?.sinceMs;
  renew(
    byId('tiles'),
    // The worst first: on a phone the tiles fill several screens.
    parts
      .map((part) => doubted(part, parts))
      .toSorted(worstFirst)
      .map((part) => tile(part, sinceOf(part), nowMs)),
  );
}

/** A part that needs the store, and notices its loss only by requests, is not shown as healthy while the store is down. */
function doubted(part, parts) {
  const isDown = parts.some(({ id, status }) => id === 'store' && status === 'down');
  if (!isDown || part.status !== 'ok' || part.id !== 'refresh-tokens') return part;
  return {
    ...part,
    status: 'unknown',
    text: `${part.text}; while the store is down no refresh can be checked`,
  };
}

const ranks = ['down', 'degraded', 'unknown', 'ok', 'off'];

function worstFirst(one, other) {
  return ranks.indexOf(one.status) - ranks.indexOf(other.status);
}

function tile({ title, status, text, facts }, sinceMs, nowMs) {
  return el(
    'article',
    { class: 'card tile', 'data-status': status },
    el('h3', {}, title, ' ', el('span', { class: 'pill', 'data-status': status }, statusWords[status])),
    el('p', {}, sentence(cut(text)), sinceMs !== undefined && ` Since ${fullTime(sinceMs)}.`),
    el(
      'dl',
      { class: 'facts' },
      facts
        .filter(({ value }) => value !== null)
        .map((fact) =>
          el(
            'div',
            {},
            el('dt', {}, fact.label),
            el(
              'dd',
              { title: fact.unit === 'time' ? fullTime(fact.value) : undefined },
              factText(fact, nowMs),
            ),
          ),
        ),
    ),
  );
}

function factText({ value, unit }, nowMs) {
  if (unit === 'time') return value === null ? '' : ago(value, nowMs);
  if (unit === 'ms') return `${count(value)} ms`;
  return typeof value === 'number' ? count(value) : cut(String(value ?? ''));
}

/** A process that ended without notice is counted for this long, and for its lease. */
const membersKnownMs = 12_000;

function showSystem({ processes, workers, keys, sharing }, { parts, nowMs }) {
  const store = parts.find(({ id }) => id === 'store');
  const isShared = store?.facts.some(({ label, value }) => label === 'kind' && value !== 'memory');
  const none = isShared
    ? 'The store cannot be reached, so other replicas are not known.'
    : 'No store is shared, so other replicas are not known.';
  const others =
    sharing === null
      ? none
      : `The store knows ${plural(sharing, 'process', 'processes')} of all replicas; ended ones count for at least ${span(membersKnownMs)}.`;
  say(
    byId('processes-about'),
    `${count(processes.length)} of ${plural(workers, 'process', 'processes')} ${processes.length === 1 ? 'serves' : 'serve'} here. ${others}`,
  );
  renew(
    byId('processes-body'),
    processes.map(({ pid, startedMs, memoryBytes }) =>
      el(
        'tr',
        {},
        el('th', { scope: 'row' }, pid),
        el('td', {}, span(nowMs - startedMs)),
        el('td', { class: 'number' }, bytes(memoryBytes)),
      ),
    ),
  );
  const sources = parts.filter(({ id }) => id === 'keys' || id.startsWith('keys-'));
  const about = sources.map(({ title, text, facts }) => {
    const loadedMs = facts.find(({ label }) => label === 'last load')?.value;
    const loaded = loadedMs ? `, last loaded ${ago(loadedMs, nowMs)}` : '';
    return `${sources.length > 1 ? `${title}: ` : ''}${text}${loaded}`;
  });
  say(byId('keys-about'), about.map(sentence).join(' ') || 'There are none: introspection is used.');
  renew(
    byId('keys-body'),
    keys.map(({ issuer, kid, algorithms, fingerprint, sinceMs }) =>
      el(
        'tr',
        {},
        el(
          'th',
          { scope: 'row' },
          issuer === null ? '' : `${issuer}: `,
          el('code', {}, kid === null ? '(none)' : cut(kid, 80)),
        ),
        el('td', {}, algorithms.join(', ')),
        el('td', { class: 'secondary' }, el('code', {}, fingerprint ?? '(shared secret)')),
        el('td', { title: fullTime(sinceMs) }, ago(sinceMs, nowMs)),
      ),
    ),
  );
}

function startPurge(api) {
  const kind = byId('purge-kind');
  const text = byId('purge-text');
  const notify = (words, isBad) => {
    byId('purge-notice').classList.toggle('bad', isBad);
    say(byId('purge-notice'), words);
  };
  const follow = () => {
    text.disabled = kind.value === 'all';
  };
  kind.addEventListener('change', follow);
  byId('purge-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const value = text.value.trim();
    if (kind.value !== 'all' && value === '') return text.focus();
    const what = {
      url: `what is cached of ${cut(value, 200)}`,
      prefix: `every cached URL that begins with ${cut(value, 200)}`,
      all: 'every cached URL',
    }[kind.value];
    if (!(await confirmAction(`This drops ${what}, in every replica. The shop is asked again.`, 'Drop it')))
      return;
    try {
      await api.post('api/purge', kind.value === 'all' ? { all: true } : { [kind.value]: value });
      notify(`Dropped ${what}.`, false);
    } catch (fault) {
      notify(fault.status === 404 ? 'The URL resolver is off: nothing is cached.' : fault.message, true);
    }
  });
}
