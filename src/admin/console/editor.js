import { byId, cut, el, say, show } from './dom.js';
import { diffLines } from './line-diff.js';
import { problemItem } from './now.js';
import { count, plural } from './words.js';

/**
 * The editor saves only a text that was checked as it stands and whose differences were shown. Where routes would be
 * protected less, it also asks for consent.
 */
export function startEditor(api, notify) {
  const section = byId('edit');
  const form = byId('edit-form');
  const textarea = byId('edit-text');
  const save = byId('edit-save');
  const open = byId('edit-open');
  const result = byId('edit-result');
  let file;
  let checked;

  const text = () => (file.usesCrLf ? textarea.value.replaceAll('\n', '\r\n') : textarea.value);

  const forgetCheck = () => {
    checked = undefined;
    save.disabled = true;
  };

  const load = async () => {
    const read = await api.get('api/list');
    file = { ...read, usesCrLf: read.text.includes('\r\n') };
    textarea.value = read.text;
    forgetCheck();
    show(result);
    form.hidden = false;
    open.hidden = true;
    notify('');
    textarea.focus();
    textarea.setSelectionRange(0, 0);
  };

  const check = async () => {
    const candidate = text();
    const answer = await api.post('api/list/check', { text: candidate });
    // Closed meanwhile, or written on: nobody waits for this answer any more.
    if (file === undefined || candidate !== text()) return;
    const isGood = answer.difference !== undefined && answer.difference !== null;
    const lines = diffLines(file.text, candidate);
    const opened = isGood ? answer.difference.counts.looser : 0;
    const consent = opened > 0 ? el('input', { type: 'checkbox', id: 'edit-consent' }) : undefined;
    const allow = () => {
      save.disabled = !isGood || lines?.length === 0 || (consent !== undefined && !consent.checked);
    };
    consent?.addEventListener('change', allow);
    show(
      result,
      problemsElement(answer, textarea),
      isGood && differenceElement(answer.difference, answer.rows),
      consent &&
        el(
          'p',
          { class: 'banner bad' },
          el(
            'label',
            { for: 'edit-consent' },
            consent,
            ` ${plural(opened, 'route')} will be protected less than now; that is meant.`,
          ),
        ),
      linesElement(lines),
    );
    checked = candidate;
    allow();
    result.focus();
    notify(
      isGood
        ? 'The list is good; here is the difference.'
        : `The list has ${plural(answer.errors, 'mistake')}.`,
      { isBad: !isGood },
    );
  };

  const write = async () => {
    if (checked === undefined || checked !== text()) return forgetCheck();
    save.disabled = true;
    const saved = await api.post('api/list', { text: checked, entityTag: file.entityTag });
    close();
    const { added, removed } = saved.difference.counts;
    notify(
      `Saved: ${count(saved.rows)} rows, ${count(added)} added, ${count(removed)} removed. It takes effect within a moment.`,
    );
  };

  const close = () => {
    form.hidden = true;
    open.hidden = false;
    file = undefined;
    show(result);
    open.focus();
  };

  /** When somebody else saved first: keeps what was typed, and compares it with the file as it is now. */
  const compareAnew = async () => {
    const read = await api.get('api/list');
    file = { ...read, usesCrLf: read.text.includes('\r\n') };
    await check();
  };

  /** Shows an error next to the editor, and not somewhere on the page. */
  const attempt = (action) => async (event) => {
    event.preventDefault();
    try {
      await action();
    } catch (fault) {
      const anew = el(
        'button',
        { type: 'button' },
        'Keep my text, and compare it with the file as it is now',
      );
      anew.addEventListener('click', attempt(compareAnew));
      show(
        result,
        el('p', { class: 'banner bad', role: 'alert' }, fault.status === 413 ? tooLong : fault.message),
        fault.status === 412 && el('p', {}, anew),
        problemsElement(fault.body ?? {}, textarea),
      );
      save.disabled = true;
      notify('');
    }
  };
  open.addEventListener('click', attempt(load));
  form.addEventListener('submit', attempt(check));
  save.addEventListener('click', attempt(write));
  byId('edit-cancel').addEventListener('click', () => {
    close();
    notify('');
  });
  textarea.addEventListener('input', () => {
    forgetCheck();
    notify('');
  });

  return ({ isEditable, list }) => {
    section.hidden = !isEditable;
    say(
      byId('edit-about'),
      `${list.file}. A save replaces the file at once, and takes effect without a restart.`,
    );
  };
}

const tooLong = 'This text is longer than the console takes (1 MiB): edit the file itself.';

/** Mistakes, and changed rows of each kind, that are listed; the rest is counted. */
const mostShown = 50;

function problemsElement({ problems = [], errors = 0 }, textarea) {
  if (problems.length === 0) return undefined;
  const bySeverity = problems.toSorted((a, b) => a.severity.localeCompare(b.severity));
  const items = bySeverity.slice(0, mostShown).map((problem) => {
    const item = problemItem(problem);
    const go = el('button', { type: 'button', class: 'small' }, `go to line ${problem.line}`);
    go.addEventListener('click', () => goTo(textarea, problem.line, problem.column));
    item.append(' ', go);
    return item;
  });
  const isBad = problems.some(({ severity }) => severity === 'error');
  const title = isBad ? 'Mistakes: this list cannot be saved' : 'Remarks';
  return el(
    'div',
    { class: isBad ? 'banner bad' : 'banner observe' },
    el('strong', {}, title),
    el('ul', {}, items),
    errors > mostShown && el('p', {}, `and ${plural(errors - mostShown, 'more mistake')}`),
  );
}

function goTo(textarea, line, column) {
  const lines = textarea.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const place = start + Math.min(column - 1, lines[line - 1]?.length ?? 0);
  textarea.focus();
  textarea.setSelectionRange(place, start + (lines[line - 1]?.length ?? 0));
  textarea.scrollTop = (textarea.scrollHeight / lines.length) * Math.max(0, line - 5);
}

function differenceElement({ added, removed, changed, counts }, rows) {
  const rowText = ({ id, group, scopes, observe }) =>
    [id, `group ${group}`, scopes.length > 0 && `scopes ${scopes.join(' ')}`, observe && 'observe']
      .filter(Boolean)
      .map((part) => cut(part))
      .join(', ');
  const part = (title, kind, items) =>
    items.length > 0 && [
      el('h4', {}, title),
      el('ul', { class: `difference ${kind}` }, items.slice(0, mostShown)),
      items.length > mostShown && el('p', { class: 'quiet' }, `The first ${mostShown} are shown.`),
    ];
  const isSame = added.length + removed.length + changed.length === 0;
  const numbers = `${count(counts.removed)} removed, ${count(counts.added)} added, ${count(counts.changed)} changed`;
  return el(
    'div',
    {},
    el('h3', {}, `Against the list in force: ${plural(rows, 'row')} afterwards`),
    el('p', {}, isSame ? 'No route is protected differently.' : `${numbers}.`),
    part(
      'No longer protected by a row, or by one that asks for less',
      'removed',
      removed.filter(({ isLooser }) => isLooser).map((row) => el('li', {}, rowText(row))),
    ),
    part(
      'Removed; other rows ask for as much',
      'changed',
      removed.filter(({ isLooser }) => !isLooser).map((row) => el('li', {}, rowText(row))),
    ),
    part(
      'Protected from now on',
      'added',
      added.map((row) => el('li', {}, rowText(row))),
    ),
    part(
      'Changed',
      'changed',
      changed.map(({ before, after, what, isLooser }) =>
        el(
          'li',
          {},
          `${rowText(before)} → ${rowText(after)} (${what.join(', ')}${isLooser ? ', asks for less' : ''})`,
        ),
      ),
    ),
  );
}

const signs = { same: ' ', added: '+', removed: '-', gap: ' ' };

function linesElement(lines) {
  if (lines === undefined) return el('p', {}, 'Too many lines differ to be shown one by one.');
  if (lines.length === 0) return el('p', {}, 'The text is the same as the file.');
  return [
    el('h3', {}, 'Lines'),
    el(
      'pre',
      { class: 'lines', tabindex: 0, role: 'region', 'aria-label': 'Difference line by line' },
      lines.map(({ kind, text }) => el('span', { class: `diff ${kind}` }, `${signs[kind]} ${text}\n`)),
    ),
  ];
}
