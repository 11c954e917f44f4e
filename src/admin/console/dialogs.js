import { byId, say } from './dom.js';

/** A token is one word of what a field of HTTP can carry. */
const tokenForm = /^[\x21-\x7e]+$/;

/** Asks for the admin token; resolves once one was typed. `isRefused`: the one so far is not accepted, or not any more. */
export function askToken(isRefused) {
  const dialog = byId('token-dialog');
  const input = byId('token-input');
  say(byId('token-fault'), isRefused ? 'That token is not accepted. Was it changed?' : '');
  return new Promise((resolve) => {
    let given;
    byId('token-form').onsubmit = (event) => {
      event.preventDefault();
      const token = input.value.trim();
      if (!tokenForm.test(token)) {
        say(byId('token-fault'), 'A token has letters, digits and marks of ASCII alone, and no space.');
        return input.focus();
      }
      given = token;
      dialog.close();
    };
    // Without a token the page shows nothing: whatever closes the dialog only asks again.
    dialog.onclose = () => {
      input.value = '';
      if (given === undefined) return dialog.showModal();
      resolve(given);
    };
    dialog.showModal();
    input.focus();
  });
}

/** Resolves whether somebody said yes; whatever else closes the dialog is no. */
export function confirmAction(text, yes) {
  const dialog = byId('confirm-dialog');
  say(byId('confirm-text'), text);
  say(byId('confirm-yes'), yes);
  return new Promise((resolve) => {
    let answer = false;
    dialog.onclose = () => resolve(answer);
    byId('confirm-form').onsubmit = (event) => {
      event.preventDefault();
      answer = true;
      dialog.close();
    };
    byId('confirm-no').onclick = () => dialog.close();
    dialog.showModal();
    byId('confirm-no').focus();
  });
}
