import { createApi } from './api.js';
import { askToken } from './dialogs.js';
import { byId, say } from './dom.js';
import { startList } from './list.js';
import { startNow } from './now.js';
import { startRequests } from './requests.js';
import { startRollOut } from './rollout.js';
import { startRouter } from './router.js';
import { startSystem } from './system.js';

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

async function refresh() {
  const state = await api.get('api/state');
  say(byId('version'), state.version);
  showHealth(state);
  await views[shownView()].refresh(state);
}

function showHealth({ ready, incidents }) {
  const health = byId('health');
  health.dataset.status = ready ? (incidents.length > 0 ? 'degraded' : 'ok') : 'down';
  const remark = incidents.length > 0 ? ', not all well' : '';
  say(health, ready ? `ready${remark}` : 'not ready');
}

/** The answers do not come any more: what is shown is old. */
function showSilence(text) {
  byId('health').dataset.status = 'down';
  say(byId('health'), text);
}

let refreshing;
/** One at a time; a view that was just shown does not wait for its turn. */
function refreshSoon() {
  refreshing ??= refresh()
    .catch((fault) => showSilence(fault.message))
    .finally(() => {
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
keepFresh();
