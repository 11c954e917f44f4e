import { byId, say } from './dom.js';

/** Asks for the admin token; resolves once one was typed. */
export function askToken(isWrong) {
  const dialog = byId('token-dialog');
  const form = byId('token-form');
  const input = byId('token-input');
  say(byId('token-fault'), isWrong ? 'That token was not accepted.' : '');
  return new Promise((resolve) => {
    // Without a token the page shows nothing: Escape only asks again.
    dialog.oncancel = (event) => event.preventDefault();
    form.onsubmit = (event) => {
      event.preventDefault();
      const token = input.value.trim();
      if (token === '') return;
      input.value = '';
      dialog.close();
      resolve(token);
    };
    dialog.showModal();
    input.focus();
  });
}

/** Resolves whether somebody said yes; Escape and No are no. */
export function confirmAction(text, yes) {
  const dialog = byId('confirm-dialog');
  say(byId('confirm-text'), text);
  say(byId('confirm-yes'), yes);
  return new Promise((resolve) => {
    const end = (answer) => {
      dialog.close();
      resolve(answer);
    };
    dialog.oncancel = () => resolve(false);
    byId('confirm-form').onsubmit = (event) => {
      event.preventDefault();
      end(true);
    };
    byId('confirm-no').onclick = () => end(false);
    dialog.showModal();
    byId('confirm-no').focus();
  });
}
