import { createApi } from './api.js';
import { startDecisions } from './decisions.js';
import { byId, say } from './dom.js';
import { showDrift } from './drift.js';
import { startEditor } from './editor.js';
import { startExplain } from './explain.js';
import { showSilence, showState } from './overview.js';
import { startRows } from './rows.js';
import { askToken } from './token.js';

const everyMs = 2_000;
/** A list of thousands of rows is worth some milliseconds of the proxy; it is asked for less often. */
const longListRows = 1_000;
const longListEvery = 15;

const api = createApi(askToken);
const notify = (text, { isBad = false } = {}) => {
  byId('notice').classList.toggle('bad', isBad);
  say(byId('notice'), text);
};
const takeRows = startRows();
const takeEditable = startEditor(api, notify);
startExplain(api);
startDecisions(api);

let rounds = 0;
let inForceSinceMs = 0;

async function refresh() {
  const state = await api.get('api/state');
  showState(state);
  showDrift(state);
  takeEditable(state);
  const isNew = state.list.inForceSinceMs !== inForceSinceMs;
  if (isNew || state.list.rows <= longListRows || rounds % longListEvery === 0) {
    inForceSinceMs = state.list.inForceSinceMs;
    takeRows(await api.get('api/rows'), state.nowMs);
  }
  rounds++;
}

/** Asks only while somebody looks. */
async function keepFresh() {
  for (;;) {
    if (!document.hidden) await refresh().catch((fault) => showSilence(fault.message));
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
keepFresh();
