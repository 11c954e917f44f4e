import { decisionItem } from './decision-item.js';
import { byId, cut, el, renew, say } from './dom.js';
import { reasonParagraphs, reasonText, startExplainBox } from './explanation.js';
import { addressOf } from './router.js';
import { count, fullTime, plural } from './words.js';

const fields = ['q', 'outcome', 'id', 'path', 'row', 'reason', 'client'];
const pageSize = matchMedia('(max-width: 40rem)').matches ? 20 : 50;

/**
 * Decisions of all workers, searched on the server; the page's address contains the search. Following shows new decisions
 * every two seconds. It pauses while a decision is open, older ones are shown, or the pointer or focus is on the list, which
 * must not move then.
 */
export function startRequests(api) {
  const form = byId('search-form');
  const list = byId('decisions');
  const follow = byId('follow');
  const older = byId('older');
  /** Decision -> its element, so that open decisions stay open. */
  let items = new Map();
  let params = new URLSearchParams();
  let isFollowing = true;
  let next = null;
  /** Answers may arrive out of order: only the answer to the last question counts. */
  let asked = 0;
  /** The result of a search is spoken once, even if it arrives with a refresh of the view. */
  let isUnspoken = false;

  const setFollowing = (value) => {
    isFollowing = value;
    // An answer under way must not move the decision that was just opened.
    if (!value) asked++;
    follow.setAttribute('aria-pressed', String(value));
    say(follow, value ? 'Following' : 'Follow again');
  };
  const search = (more) =>
    api.get(`api/decisions/search?${new URLSearchParams([...params, ...Object.entries(more)])}`);
  const itemOf = (decision) => {
    const known = items.get(keyOf(decision));
    return known ?? decisionItem(api, decision, () => setFollowing(false));
  };
  const showFound = (found, kept) => {
    const fresh = new Map(found.decisions.map((decision) => [keyOf(decision), itemOf(decision)]));
    items = new Map([...kept, ...fresh]);
    const wanted = [...items.values()];
    // Elements that stay are not touched: they may contain the focus or a selection.
    wanted.forEach((element, i) => {
      if (list.children[i] !== element) list.insertBefore(element, list.children[i] ?? null);
    });
    while (list.childElementCount > wanted.length) list.lastElementChild.remove();
    next = found.next;
    older.hidden = next === null;
    showState(found);
  };
  const showState = ({ found, kept, keptSinceMs, counts }) => {
    const since = keptSinceMs === null ? '' : ` kept since ${fullTime(keptSinceMs)}`;
    const nothing =
      kept === 0
        ? 'No requests yet.'
        : `None of the last ${count(kept)} decisions${since} matches. Older ones are in the log: paste the line into "Explain a request".`;
    const text = `${plural(found, 'decision')} of the last ${count(kept)}${since}; older ones are in the log.`;
    say(byId('search-state'), found === 0 ? nothing : text);
    renew(byId('search-common'), chips(counts, found, params));
  };
  /** Results of another search or view must not look like the current ones, nor be clickable. */
  const clear = () => {
    items = new Map();
    list.replaceChildren();
    older.hidden = true;
    say(byId('search-state'), 'loading');
    renew(byId('search-common'), []);
  };
  const load = async (isPaused) => {
    const number = ++asked;
    // Results of following are not spoken: they change every two seconds.
    isUnspoken ||= isPaused === undefined;
    const found = await search({ limit: pageSize });
    if (number !== asked || isPaused?.()) return;
    showFound(found, new Map());
    if (isUnspoken) say(byId('search-said'), `${plural(found.found, 'decision')} found`);
    isUnspoken = false;
  };
  const loadOlder = async () => {
    const kept = items;
    const found = await search({ limit: pageSize, before: next });
    // Older decisions are added only if the shown result is still the same.
    if (kept === items) showFound(found, kept);
  };
  /** A decision under the pointer may be about to be clicked. */
  const isPointedAt = () => items.size > 0 && list.matches(':hover, :focus-within');

  /** Runs work that is not awaited; an error replaces the result, unless something else is shown by then. */
  const attempt = (work) => {
    const shown = params;
    work.catch((fault) => {
      if (shown === params) say(byId('search-state'), fault.message);
    });
  };

  const apply = () => {
    const data = new FormData(form);
    const given = Object.fromEntries(fields.map((name) => [name, wordOf(String(data.get(name) ?? ''))]));
    location.hash = addressOf('requests', given);
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    apply();
    // The same search does not change the address, so it is loaded here.
    setFollowing(true);
    attempt(load());
  });
  byId('search-q').addEventListener('input', () => {
    const text = wordOf(byId('search-q').value);
    // Replaces the address: the browser's history needs no entry for each letter.
    if (text === '') params.delete('q');
    else params.set('q', text);
    history.replaceState(null, '', addressOf('requests', Object.fromEntries(params)));
    attempt(load());
  });
  byId('search-outcome').addEventListener('change', apply);
  follow.addEventListener('click', () => {
    setFollowing(!isFollowing);
    if (isFollowing) attempt(load());
  });
  older.addEventListener('click', () => {
    setFollowing(false);
    attempt(loadOlder());
  });
  startExplainBox(api);

  return {
    show(given) {
      params = new URLSearchParams(
        fields.flatMap((name) => (given.get(name) ? [[name, given.get(name)]] : [])),
      );
      for (const name of fields) form.elements[name].value = params.get(name) ?? '';
      byId('search-more').open ||= ['id', 'path', 'row', 'reason', 'client'].some((name) => params.has(name));
      clear();
      setFollowing(true);
      attempt(load());
      const shown = params;
      attempt(showReason(api, params.get('reason'), () => shown === params));
    },
    async refresh() {
      if (isFollowing) say(follow, isPointedAt() ? 'Following (paused)' : 'Following');
      // Checked again after the answer: the pointer may have moved onto the list meanwhile.
      if (isFollowing && !isPointedAt()) await load(isPointedAt);
    },
  };
}

/** Cause and cure of the reason that is searched for; runbooks link here. */
async function showReason(api, name, isStill) {
  const about = byId('reason-about');
  const text = name === null ? undefined : await reasonText(api, name);
  if (!isStill()) return;
  about.hidden = text === undefined;
  renew(about, text && [el('h3', {}, el('code', {}, name), ` (${text.status})`), ...reasonParagraphs(text)]);
}

/** Makes a search word of pasted text: the value of `Name: value`, the path of a URL (decisions have no query). */
export function wordOf(pasted) {
  const text = pasted.trim().replace(/^[\w-]+:\s+/, '');
  return URL.canParse(text) && /^https?:/i.test(text) ? new URL(text).pathname : text.replace(/\?.*$/s, '');
}

/** `seq` alone does not identify a decision: it starts again from 1 when the process restarts. */
const keyOf = ({ seq, atMs, requestId }) => `${seq} ${atMs} ${requestId}`;

/** The most frequent reasons, clients and rows of the result, each a link that narrows the search. */
function chips({ reasons, clients, rows }, found, params) {
  if (found < 2) return [];
  const kinds = [
    ['reason', reasons],
    ['client', clients],
    ['row', rows],
  ];
  return kinds.flatMap(([name, values]) =>
    params.has(name)
      ? []
      : values.slice(0, 3).map(([value, times]) =>
          el(
            'li',
            {},
            el(
              'a',
              {
                class: 'chip',
                href: addressOf('requests', { ...Object.fromEntries(params), [name]: value }),
              },
              `${name === 'row' && value === '*' ? 'no row' : cut(value, 60)} `,
              el('b', {}, count(times)),
            ),
          ),
        ),
  );
}
