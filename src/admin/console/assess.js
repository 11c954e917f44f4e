import { addressOf } from './router.js';
import { count, plural } from './words.js';

/**
 * What the first screen says: one sentence, then what is wrong, since when, and what to do. Pure: from the
 * answer of `/api/state` alone.
 *
 * Status: `down` (clients feel it), `degraded` (it works, something is broken), `notice` (worth knowing), `ok`.
 */
export function assess(state) {
  const concerns = [
    ...causesOf(state.incidents).map((incident) => incidentConcern(incident, state)),
    ...trafficConcerns(state),
    ...modeConcerns(state),
    ...driftConcerns(state),
  ];
  const rank = ['down', 'degraded', 'notice'];
  concerns.sort((a, b) => rank.indexOf(a.status) - rank.indexOf(b.status));
  return { ...sentenceOf(concerns, state), concerns };
}

function sentenceOf([first], { mode, list, total, ready }) {
  const protects =
    mode === 'observe'
      ? 'Observe mode: nothing is enforced'
      : `${plural(list.rows - list.observing, 'row')} enforced`;
  if (first?.status === 'down') return { status: 'down', sentence: first.title, sinceMs: first.sinceMs };
  if (!ready) return { status: 'down', sentence: 'Not ready to serve' };
  if (first?.status === 'degraded') {
    return {
      status: 'degraded',
      sentence: `Serving, but ${lowerFirst(first.title)}`,
      sinceMs: first.sinceMs,
    };
  }
  if (total.requests === 0)
    return { status: 'ok', sentence: `Ready, and waiting for the first request. ${protects}.` };
  if (mode === 'observe') return { status: 'notice', sentence: `All is well. ${protects}.` };
  return { status: 'ok', sentence: `All is well. ${protects}.` };
}

/** Names of a system keep their capital. */
function lowerFirst(text) {
  return /^(Redis|JWKS|URL)/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

const book = (chapter) => `docs/operations.md, "${chapter}"`;

/** For each part: what it means when it is broken, what to do, where to look. */
const advice = {
  upstream: {
    title: { down: 'The shop does not answer', degraded: 'The shop failed a moment ago' },
    next: 'Requests get 502 or 504 until it answers. Look whether the shop runs, and whether it can be reached from here.',
    link: { text: 'Failed requests', href: addressOf('requests', { outcome: 'failed' }) },
    book: book('By symptom'),
  },
  store: {
    title: { down: 'Redis cannot be used', degraded: 'Redis works, but not well' },
    next: 'Look whether Redis runs and can be reached from here. Until it is back reads go on without tags, and changes of tracked resources and refreshes of tokens get 503: nothing is changed unchecked.',
    link: { text: 'State of the store', href: addressOf('system') },
    book: book('Redis'),
  },
  keys: {
    title: { down: 'No keys to verify access tokens with', degraded: 'The signing keys were not refreshed' },
    next: 'Look at the source of the keys. Known keys stay in use; without any, protected requests get 503.',
    link: { text: 'Signing keys', href: addressOf('system') },
    book: book('By symptom'),
  },
  introspection: {
    title: { limping: 'Nobody says whether access tokens are active' },
    next: 'Requests with such tokens get 503 unless their answer is still known. Look at the introspection endpoint.',
    link: { text: 'State of the system', href: addressOf('system') },
    book: book('By symptom'),
  },
  'entity-tags': {
    title: { down: 'Entity tags cannot be kept', degraded: 'Entity tags are not given out' },
    next: 'Changes of tracked resources get 503 where nobody can check them. The cause is usually the store.',
    link: { text: 'State of the store', href: addressOf('system') },
    book: book('Redis'),
  },
  'url-resolver': {
    title: { down: 'The URL resolver is down', degraded: 'The URL resolver works with what it has' },
    next: 'Known URLs are still answered. Look at the mapping file, or at the store that the replicas share.',
    link: { text: 'State of the resolver', href: addressOf('system') },
    book: book('By symptom'),
  },
  'refresh-tokens': {
    title: {
      down: 'Refresh tokens cannot be checked',
      degraded: 'States of refresh tokens wait for the store',
    },
    next: 'A refresh that nobody can check gets 503. The cause is usually the store.',
    link: { text: 'State of the store', href: addressOf('system') },
    book: book('Refresh tokens'),
  },
  list: {
    title: { degraded: 'The last edit of a file is not in force' },
    next: 'The last good version is in force. Mend the line that is named; the file is read again by itself.',
    link: { text: 'The list', href: addressOf('list') },
    book: book('By symptom'),
  },
};

/** What lives in the store, and is not well because the store is not. */
const storeUsers = ['entity-tags', 'refresh-tokens', 'url-resolver'];

/** A cause is said once, with what follows from it. */
function causesOf(incidents) {
  const store = incidents.find(({ id }) => id === 'store');
  if (store === undefined) return incidents;
  const follows = incidents.filter(({ id }) => storeUsers.includes(id));
  const text = [store.text, ...follows.map((one) => `${one.title}: ${one.text}`)].join('. ');
  return incidents.flatMap((one) =>
    follows.includes(one) ? [] : one === store ? [{ ...store, text }] : [one],
  );
}

function incidentConcern({ id, title, status, text, sinceMs }, { problems }) {
  // The keys of each of several issuers are a part of their own: `keys-customers`.
  const isOfOne = id.startsWith('keys-');
  const known = advice[isOfOne ? 'keys' : id];
  const knownTitle = known?.title[status] && `${known.title[status]}${isOfOne ? ` (${title})` : ''}`;
  return {
    id,
    status,
    title: knownTitle ?? `${title}: ${status === 'down' ? 'down' : 'degraded'}`,
    text: id === 'list' ? '' : text,
    problems: id === 'list' ? problems : [],
    sinceMs,
    next: known?.next ?? 'Look at the part that says so.',
    link: known?.link ?? { text: 'state of the system', href: addressOf('system') },
    book: known?.book ?? book('By symptom'),
  };
}

/** Of the last minutes; fewer than this say nothing. */
const leastRequests = 30;
const manyRefused = 0.5;
const manyFailed = 0.05;

function trafficConcerns({ timeline, incidents, startedMs }) {
  const sum = (name) => timeline[name].reduce((a, b) => a + b, 0);
  const [passed, refused, observed, failed] = ['passed', 'refused', 'observed', 'failed'].map(sum);
  const all = passed + refused + observed + failed;
  const concerns = [];
  /** The first step in which the share was so; a step may have begun before the process did. */
  const since = (name, least) => {
    const inStep = (i) =>
      timeline.passed[i] + timeline.refused[i] + timeline.observed[i] + timeline.failed[i];
    const first = timeline[name].findIndex((times, i) => times > 0 && times / inStep(i) >= least);
    const beganMs = timeline.endMs - (timeline[name].length - first) * timeline.stepMs;
    return Math.max(beganMs, startedMs ?? beganMs);
  };
  if (all >= leastRequests && refused / all >= manyRefused) {
    concerns.push({
      id: 'many-refusals',
      status: 'degraded',
      title: `Most requests are refused: ${share(refused, all)} of the last 5 minutes`,
      text: `${count(refused)} of ${plural(all, 'request')}. An attack, or a client that broke.`,
      sinceMs: since('refused', manyRefused),
      next: 'Look which reason and which client it is. shopward refuses them by itself; a single address is best stopped in front of it.',
      link: { text: 'Refused requests', href: addressOf('requests', { outcome: 'refused' }) },
      book: 'docs/reasons.md',
    });
  }
  // What the shop's own incident says need not be said twice.
  if (all >= leastRequests && failed / all >= manyFailed && !incidents.some(({ id }) => id === 'upstream')) {
    concerns.push({
      id: 'many-failures',
      status: 'degraded',
      title: `Requests fail: ${share(failed, all)} of the last 5 minutes`,
      text: `${count(failed)} of ${plural(all, 'request')} ended with 5xx, or broke off.`,
      sinceMs: since('failed', manyFailed),
      next: 'Look which requests they are, and whether the shop or a part of shopward answered them so.',
      link: { text: 'Failed requests', href: addressOf('requests', { outcome: 'failed' }) },
      book: book('By symptom'),
    });
  }
  return concerns;
}

function share(part, all) {
  return `${Math.round((100 * part) / all)} %`;
}

function modeConcerns({ mode, list, total, startedMs }) {
  const isWhole = mode === 'observe';
  if (!isWhole && list.observing === 0) return [];
  const seen = Object.values(total.observed).reduce((a, b) => a + b, 0);
  return [
    {
      id: 'observe',
      status: 'notice',
      title: isWhole
        ? 'Observe mode: nothing is enforced'
        : `${plural(list.observing, 'row')} ${list.observing === 1 ? 'is' : 'are'} in observe mode`,
      text: `${plural(seen, 'request')} would have been refused, and went on to the shop.`,
      sinceMs: startedMs,
      next: isWhole
        ? 'Look who would be refused and why; when nobody is who should not be, set mode: enforce.'
        : 'Look who would be refused; then take observe off those rows.',
      link: { text: 'Is it safe to enforce?', href: addressOf('roll-out') },
      book: 'docs/rollout.md',
    },
  ];
}

function driftConcerns({ drift }) {
  const missing = drift.unlisted.filter(
    ({ passed, unauthorized, forbidden }) => passed < unauthorized + forbidden,
  );
  if (missing.length === 0) return [];
  return [
    {
      id: 'drift',
      status: 'notice',
      title: `${plural(missing.length, 'route')} that the shop refuses ${missing.length === 1 ? 'has' : 'have'} no row`,
      text: `Such as ${missing[0].method} ${missing[0].template}.`,
      next: 'Where the shop refuses most requests, the list probably misses a row.',
      link: { text: 'These routes', href: addressOf('list', { part: 'drift' }) },
      book: 'docs/rollout.md',
    },
  ];
}
