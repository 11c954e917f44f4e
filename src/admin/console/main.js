import { createApi } from './api.js';
import { askToken } from './dialogs.js';
import { byId, say } from './dom.js';
import { startList } from './list.js';
import { startNow } from './now.js';
import { longestWaitMs, Poll } from './poll.js';
import { startRequests } from './requests.js';
import { startRollOut } from './rollout.js';
import { startRouter } from './router.js';
import { startSystem } from './system.js';
import { fullTime, plural, span } from './words.js';

const api = createApi(askToken);
/** Each view has `show(params)`, called when it is opened, and `refresh(state)`, called while it is open. */
const views = {
  now: startNow(api),
  requests: startRequests(api),
  list: startList(api),
  'roll-out': startRollOut(api),
  system: startSystem(api),
  unknown: { show() {}, async refresh() {} },
};

/** The last state; undefined: none has arrived yet. */
let last;
/** The version of shopward that served this page. */
let ownVersion;

/** Resolves to whether there was an answer. */
async function refresh() {
  let state;
  try {
    state = await api.get('api/state');
  } catch (fault) {
    showSilence(fault.message);
    return false;
  }
  last = state;
  ownVersion ??= state.version;
  say(byId('version'), state.version);
  showHealth(state);
  views.now.announce(state);
  await showView(() => views[shownView()].refresh(state));
  return true;
}

/** Shows an error of a view in a separate banner: shopward itself did answer. */
async function showView(run) {
  let text = '';
  try {
    await run();
  } catch (fault) {
    text = fault.message;
  }
  banner('fault', text);
}

function banner(id, text) {
  say(byId(id), text);
  byId(id).hidden = text === '';
}

function showHealth({ ready, incidents, version, mode, list }) {
  const health = byId('health');
  const isDown = incidents.some(({ status }) => status === 'down');
  health.dataset.status = !ready || isDown ? 'down' : incidents.length > 0 ? 'degraded' : 'ok';
  const remark = isDown ? ', but something is down' : incidents.length > 0 ? ', not all well' : '';
  say(health, ready ? `ready${remark}` : 'not ready');
  // On every view: rows that only observe must not look protected.
  const observed =
    mode === 'observe' ? 'nothing is enforced' : `${plural(list.observing, 'row')} observed only`;
  byId('mode').hidden = mode !== 'observe' && list.observing === 0;
  say(byId('mode'), observed);
  banner('silence', '');
  const isOutdated = version !== ownVersion;
  banner('outdated', isOutdated ? `shopward is now ${version}: load this page again.` : '');
}

/** There are no answers any more: every view says that its data is old. */
function showSilence(text) {
  byId('health').dataset.status = 'down';
  say(byId('health'), 'no answer');
  const shown = last === undefined ? '' : ` The data shown is from ${fullTime(last.nowMs)}.`;
  const next = 'Check that its process runs, and that this port can be reached from here.';
  banner('silence', `${text}.${shown} ${next} The page tries again, at least every ${span(longestWaitMs)}.`);
  views.now.lose(text);
}

const poll = new Poll(refresh, () => !document.hidden);
// A view that was just shown does not wait for the next refresh.
const shownView = startRouter((view, params) => {
  views[view].show(params);
  poll.again();
});
// A page that becomes visible again must not show old data.
document.addEventListener('visibilitychange', () => poll.wake());
addEventListener('online', () => poll.wake());
