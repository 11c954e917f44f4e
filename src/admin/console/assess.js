import { addressOf } from './router.js';
import { percent, plural } from './words.js';

/**
 * Makes the first screen from a response of `/api/state`: one sentence, then what is wrong, since when, and what to do. Pure.
 * `status`: `down` (clients notice), `degraded` (requests are served, but something is broken), `notice` (worth knowing),
 * `ok`. `said`: the concern of the sentence; `concerns`: all others. `over`: the last incident, if there is none now.
 */
export function assess(state) {
  const all = [
    ...causesOf(state.incidents).map((incident) => incidentConcern(incident, state)),
    ...modeConcerns(state),
    ...driftConcerns(state),
  ];
  const rank = ['down', 'degraded', 'notice'];
  all.sort((a, b) => rank.indexOf(a.status) - rank.indexOf(b.status));
  const isSaid = all[0] !== undefined && (all[0].status !== 'notice' || all[0].isWhole === true);
  return {
    ...sentenceOf(all, state),
    said: isSaid ? all[0] : undefined,
    concerns: isSaid ? all.slice(1) : all,
    over: isBroken(all[0]) ? undefined : state.pastIncidents[0],
  };
}

const isBroken = (concern) => concern?.status === 'down' || concern?.status === 'degraded';

/** With fewer requests a share says nothing. */
const leastRequests = 30;

/** The last five minutes in words; undefined: nothing is worth mentioning. */
function shareOf({ passed, refused, observed, failed }) {
  const all = passed + refused + observed + failed;
  if (all < leastRequests) return undefined;
  if (failed / all >= 0.01) return `${percent(failed, all)} of requests fail`;
  if (refused / all >= 0.1) return `${percent(refused, all)} of requests are refused`;
  return observed / all >= 0.01 ? `${percent(observed, all)} of requests would be refused` : undefined;
}

function sentenceOf(concerns, { mode, list, total, ready, recent }) {
  const [first] = concerns;
  const protects =
    mode === 'observe'
      ? 'Observe mode: nothing is enforced'
      : `${plural(list.rows - list.observing, 'row')} enforced`;
  const others = concerns.filter(isBroken).length - 1;
  const more =
    others > 0 ? `, and ${plural(others, 'more thing')} ${others === 1 ? 'is' : 'are'} not well` : '';
  if (first?.status === 'down') return { status: 'down', sentence: `${first.title}${more}` };
  if (!ready) return { status: 'down', sentence: 'Not ready to serve' };
  if (first?.status === 'degraded') {
    return { status: 'degraded', sentence: `Serving, but ${lowerFirst(first.title)}${more}` };
  }
  if (total.requests === 0)
    return { status: 'ok', sentence: `Ready, and waiting for the first request. ${protects}.` };
  const share = shareOf(recent);
  if (share !== undefined) return { status: 'notice', sentence: `Serving; ${share}. ${protects}.` };
  return { status: mode === 'observe' ? 'notice' : 'ok', sentence: `All is well. ${protects}.` };
}

/** Proper names and abbreviations keep their capital. */
function lowerFirst(text) {
  return /^(Redis|JWKS|URL)/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

/** Words of a reason that no tile gives -> its section of the runbook. */
const sections = [
  [/\b(connections|open files):/, 'docs/operations.md#clients-are-disconnected-or-cannot-connect'],
  [/\blog:/, 'docs/operations.md#log-lines-are-missing'],
  [/\bclock/, 'docs/operations.md#clients-get-401-001-and-say-that-the-token-is-good'],
  [/not in force|certificate/, 'docs/operations.md#a-rotated-secret-or-certificate-has-no-effect'],
];

const runbookOf = (text) =>
  sections.find(([words]) => words.test(text))?.[1] ?? 'docs/operations.md#by-symptom';

/** Id of a tile or incident -> its title by status, what to do, and where to look. */
const advice = {
  upstream: {
    title: { down: 'The shop does not answer', degraded: 'The shop failed a moment ago' },
    next: 'Requests get 502 or 504 until it answers. Check that the shop runs, and that it can be reached from here.',
    link: { text: 'Failed requests', href: addressOf('requests', { outcome: 'failed' }) },
    runbook: 'docs/operations.md#clients-get-502-or-504',
  },
  store: {
    title: { down: 'Redis cannot be used', degraded: 'Redis works in part' },
    next: 'Check that Redis runs and can be reached from here. Until then reads have no tags, and changes of tracked resources and refreshes of tokens get 503: no change passes unchecked.',
    link: { text: 'State of the store', href: addressOf('system') },
    runbook: 'docs/operations.md#clients-get-503-tag-store-unavailable',
  },
  keys: {
    title: { down: 'No keys to verify access tokens with', degraded: 'The signing keys were not refreshed' },
    next: 'Check the source of the keys. Known keys stay in use; without any, protected requests get 503.',
    link: { text: 'Signing keys', href: addressOf('system') },
    runbook: 'docs/operations.md#clients-get-503-keys-unavailable',
  },
  introspection: {
    title: { degraded: 'The introspection endpoint does not answer' },
    next: 'Requests with such tokens get 503 unless an answer is still cached. Check the introspection endpoint.',
    link: { text: 'State of the system', href: addressOf('system') },
    runbook: 'docs/operations.md#clients-get-503-keys-unavailable',
  },
  'entity-tags': {
    title: { down: 'Entity tags cannot be kept', degraded: 'Entity tags are not handed out' },
    next: 'Changes of tracked resources that cannot be checked get 503. The cause is usually the store.',
    link: { text: 'State of the store', href: addressOf('system') },
    runbook: 'docs/operations.md#clients-get-503-tag-store-unavailable',
  },
  'url-resolver': {
    title: { down: 'The URL resolver is down', degraded: 'The URL resolver works in part' },
    next: 'Known URLs are still answered. Check the mapping file, or the store that the replicas share.',
    link: { text: 'State of the resolver', href: addressOf('system') },
    runbook: 'docs/url-resolver.md#the-mapping-file',
  },
  'refresh-tokens': {
    title: {
      down: 'Refresh tokens cannot be checked',
      degraded: 'States of refresh tokens wait for the store',
    },
    next: 'A refresh that cannot be checked gets 503. The cause is usually the store.',
    link: { text: 'State of the store', href: addressOf('system') },
    runbook: 'docs/operations.md#readyz-says-that-states-wait-for-the-store',
  },
  list: {
    title: { degraded: 'The last edit of a file is not in force' },
    next: 'The last good version is in force. Correct the line that is named; the file is then read again.',
    link: { text: 'The list', href: addressOf('list') },
    runbook: 'docs/operations.md#an-edit-of-the-list-has-no-effect',
  },
  'many-refusals': {
    title: { degraded: 'Most requests are refused' },
    next: 'An attack, or a broken client: look at the reasons and the clients. shopward refuses these requests; block a single address in front of shopward.',
    link: { text: 'Refused requests', href: addressOf('requests', { outcome: 'refused' }) },
    runbook: 'docs/reasons.md#who-asks',
  },
  'many-failures': {
    title: { degraded: 'Requests fail' },
    next: 'Look at these requests: did the shop fail, or a part of shopward?',
    link: { text: 'Failed requests', href: addressOf('requests', { outcome: 'failed' }) },
    runbook: 'docs/operations.md#clients-get-502-or-504',
  },
};

/** Cause -> incidents that follow from it and are then not shown separately; the first matching cause counts. */
const consequences = {
  // Without the shop every request fails; without the store only changes do.
  upstream: ['many-failures'],
  store: ['entity-tags', 'refresh-tokens', 'url-resolver', 'many-failures'],
  keys: ['many-failures'],
  introspection: ['many-failures'],
};

/** The incidents that follow from no other, each with the text of its consequences. */
function causesOf(incidents) {
  const causeOf = (one) => {
    const ids = Object.keys(consequences).filter((id) => consequences[id].includes(one.id));
    const causes = ids.flatMap((id) => incidents.filter((cause) => adviceId(cause.id) === id));
    return causes[0];
  };
  return incidents
    .filter((one) => causeOf(one) === undefined)
    .map((cause) => {
      const follows = incidents.filter((one) => causeOf(one) === cause);
      return {
        ...cause,
        text: [cause.text, ...follows.map((one) => `${one.title}: ${one.text}`)].join('. '),
      };
    });
}

/** The title of an incident on this page. */
export function titleOf({ id, title, status }) {
  // With several issuers the keys of each have their own tile, such as `keys-customers`.
  const known = advice[adviceId(id)]?.title[status];
  if (known === undefined) return `${title}: ${status}`;
  return id === adviceId(id) ? known : `${known} (${title})`;
}

const adviceId = (id) => (id.startsWith('keys-') ? 'keys' : id);

function incidentConcern(incident, { problems, parts }) {
  const { id, status, sinceMs } = incident;
  const address = parts.find((part) => part.id === id)?.facts.find(({ label }) => label === 'address')?.value;
  const text = address ? `${incident.text}. Its address is ${address}` : incident.text;
  const known = advice[adviceId(id)];
  return {
    id,
    status,
    title: titleOf(incident),
    text: id === 'list' ? '' : text,
    problems: id === 'list' ? problems : [],
    sinceMs,
    next: known?.next ?? 'Look at the part that reports this.',
    link: known?.link ?? { text: 'State of the system', href: addressOf('system') },
    runbook: known?.runbook ?? runbookOf(incident.text),
  };
}

function modeConcerns({ mode, list, total, startedMs }) {
  const isWhole = mode === 'observe';
  if (!isWhole && list.observing === 0) return [];
  const seen = Object.values(total.observed).reduce((a, b) => a + b, 0);
  return [
    {
      id: 'observe',
      status: 'notice',
      isWhole,
      title: isWhole
        ? 'Observe mode: nothing is enforced'
        : `${plural(list.observing, 'row')} ${list.observing === 1 ? 'is' : 'are'} in observe mode`,
      text: `${plural(seen, 'request')} would have been refused, and were forwarded.`,
      sinceMs: startedMs,
      next: isWhole
        ? 'See which requests would be refused and why. If all of these should be, set mode: enforce.'
        : 'See which requests would be refused; then remove observe from those rows.',
      link: { text: 'Is it safe to enforce?', href: addressOf('roll-out') },
      runbook: 'docs/rollout.md#2-read-what-would-have-happened',
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
      runbook: 'docs/rollout.md#2-read-what-would-have-happened',
    },
  ];
}
