import type { PathTableRequest } from '../../../src/routes/path-table.ts';

/** A request for the table from `METHOD /canonical/path`; `form POST /path` is a form POST. */
export function tableRequest(text: string, alternative?: string): PathTableRequest {
  const [method, path] = text.replace(/^form /, '').split(' ') as [PathTableRequest['method'], string];
  return {
    method,
    segments: path.slice(1).split('/'),
    alternativeSegments: alternative?.slice(1).split('/'),
    isFormPost: text.startsWith('form '),
  };
}
