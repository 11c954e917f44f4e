import { byId, say } from './dom.js';

/** A token must fit into the `Authorization` field: visible ASCII without spaces. */
const tokenForm = /^[\x21-\x7e]+$/;

/** Asks for the admin token; resolves once a token was entered. `isRefused`: the last token was not accepted. */
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
        say(
          byId('token-fault'),
          'A token consists of ASCII letters, digits and punctuation, without spaces.',
        );
        return input.focus();
      }
      given = token;
      dialog.close();
    };
    // Without a token the page shows nothing, so closing the dialog only opens it again.
    dialog.onclose = () => {
      input.value = '';
      if (given === undefined) return dialog.showModal();
      resolve(given);
    };
    dialog.showModal();
    input.focus();
  });
}

/** Resolves to true for a yes, and to false if the dialog is closed in another way. */
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
