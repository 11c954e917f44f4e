import type { Explain } from '../app/admin.ts';
import { explainRequest } from './explain/explanation.ts';
import { explanationText } from './explain/explanation-text.ts';
import { readPastedRequest } from './explain/pasted-request.ts';

/** `shopward explain` for the console: the same pure answer, under the list in force, with its text for people. */
export const explainForConsole: Explain = (method, url, config, list) => {
  const pasted = readPastedRequest(url);
  const asked = { method: pasted.method ?? method, target: pasted.target, host: pasted.host };
  const explanation = explainRequest(asked, config, list);
  const notes = [...pasted.notes];
  if (asked.method !== method) notes.push(`the text says ${asked.method}: that is explained, not ${method}`);
  return { ...explanation, notes, text: explanationText(explanation, notes) };
};
