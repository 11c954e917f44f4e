import { createApi } from './api.js';
import { askToken } from './dialogs.js';
import { byId, say } from './dom.js';
import { startList } from './list.js';
import { startNow } from './now.js';
import { startRequests } from './requests.js';
import { startRollOut } from './rollout.js';
import { startRouter } from './router.js';
import { startSystem } from './system.js';
import { fullTime } from './words.js';

const everyMs = 2_000;

const api = createApi(askToken);
/** Each view hears when it is shown, and of the newest state while it is. */
const views = {
  now: startNow(api),
  requests: startRequests(api),
  list: startList(api),
  'roll-out': startRollOut(api),
  system: startSystem(api),
};

/** Of the last answer; undefined: there was none yet. */
let last;
/** Which shopward this page came from. */
let ownVersion;

async function refresh() {
  let state;
  try {
    state = await api.get('api/state');
  } catch (fault) {
    return showSilence(fault.message);
  }
  last = state;
  ownVersion ??= state.version;
  say(byId('version'), state.version);
  showHealth(state);
  await showView(() => views[shownView()].refresh(state));
}

/** What goes wrong in a view is no word about shopward. */
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

function showHealth({ ready, incidents, version }) {
  const health = byId('health');
  const isDown = !ready || incidents.some(({ status }) => status === 'down');
  health.dataset.status = isDown ? 'down' : incidents.length > 0 ? 'degraded' : 'ok';
  const remark = incidents.length > 0 ? ', not all well' : '';
  say(health, ready ? `ready${remark}` : 'not ready');
  banner('silence', '');
  const isOutdated = version !== ownVersion;
  banner('outdated', isOutdated ? `shopward is ${version} by now: load this page again.` : '');
}

/** The answers do not come any more: what is shown is old, and the page says so wherever somebody looks. */
function showSilence(text) {
  byId('health').dataset.status = 'down';
  say(byId('health'), 'no answer');
  const shown = last === undefined ? '' : ` What is shown is of ${fullTime(last.nowMs)}.`;
  const next = 'Look whether its process runs, and whether this port can be reached from here.';
  banner('silence', `${text}.${shown} ${next} The page goes on asking.`);
  views.now.lose(text);
}

let refreshing;
/** One at a time; a view that was just shown does not wait for its turn. */
function refreshSoon() {
  refreshing ??= refresh().finally(() => {
    refreshing = undefined;
  });
  return refreshing;
}

const shownView = startRouter((view, params) => {
  views[view].show(params);
  const pending = refreshing ?? Promise.resolve();
  void pending.then(refreshSoon);
});

/** Asks only while somebody looks. */
async function keepFresh() {
  for (;;) {
    if (!document.hidden) await refreshSoon();
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
// A tab in the background is woken once a minute at most; whoever comes back must not read what is old.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void refreshSoon();
});
keepFresh();
