import { hasErrors } from '../config/problem.ts';
import { type AdminAnswer, fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';
import { checkListInThread } from './list-check-thread.ts';
import { type ListFileFault, readListFile, replaceListFile } from './list-file.ts';

export interface ListEditOptions {
  readonly file: string;
  /** `admin.edit`. Reading and checking change nothing, and are always there. */
  readonly isEditable: boolean;
  /** Text of the list in force, which the difference is to. */
  inForce(): string;
  /** The file was replaced. */
  onWritten(change: { readonly rows: number; readonly added: number; readonly removed: number }): void;
}

/** A list of 10,000 rows takes some 700 KB. */
const maxBodyBytes = 1024 * 1024;

/** `GET /api/list`, `POST /api/list/check` and, with `admin.edit`, `POST /api/list`. */
export function createListEndpoints(options: ListEditOptions): readonly JsonEndpoint[] {
  const { file, isEditable } = options;
  let writing: Promise<unknown> = Promise.resolve();
  // One thread at a time, however many ask.
  let checking: Promise<unknown> = Promise.resolve();

  const check = (text: string) => {
    const checked = checking.then(() => checkListInThread({ file, text, inForce: options.inForce() }));
    checking = checked.catch(() => {});
    return checked;
  };

  const write = async (text: string, entityTag: string): Promise<AdminAnswer> => {
    const checked = await check(text);
    if (checked.difference === undefined || hasErrors(checked.problems)) {
      return {
        status: 422,
        body: { error: 'the list has mistakes; nothing was written', problems: checked.problems },
      };
    }
    const written = await replaceListFile(file, text, entityTag);
    if ('fault' in written) return faultAnswer(written);
    const { added, removed } = checked.difference;
    options.onWritten({ rows: checked.rows, added: added.length, removed: removed.length });
    return { status: 200, body: { entityTag: written.entityTag, ...checked } };
  };

  return [
    {
      method: 'GET',
      path: '/api/list',
      async run() {
        const read = await readListFile(file);
        if ('fault' in read) return faultAnswer(read);
        return { status: 200, body: { file, isEditable, ...read } };
      },
    },
    {
      method: 'POST',
      path: '/api/list/check',
      maxBodyBytes,
      async run({ body }) {
        const { text } = fieldsOf(body);
        if (typeof text !== 'string') return { status: 400, body: { error: '{"text": text} is needed' } };
        return { status: 200, body: await check(text) };
      },
    },
    {
      method: 'POST',
      path: '/api/list',
      maxBodyBytes,
      run({ body }) {
        if (!isEditable) {
          const error =
            'the list cannot be edited here: admin.edit is false; edit the file, or set admin.edit: true';
          return { status: 403, body: { error } };
        }
        const { text, entityTag } = fieldsOf(body);
        if (typeof text !== 'string' || typeof entityTag !== 'string') {
          const error = '{"text": text, "entityTag": text} is needed; GET /api/list gives the entityTag';
          return { status: 400, body: { error } };
        }
        // One after the other: of two edits of one content the second must see the first.
        const answer = writing.then(() => write(text, entityTag));
        writing = answer.catch(() => {});
        return answer;
      },
    },
  ];
}

function faultAnswer(fault: ListFileFault): AdminAnswer {
  switch (fault.fault) {
    case 'changed':
      return {
        status: 412,
        body: {
          error: 'the file changed meanwhile; nothing was written. Look at it anew',
          entityTag: fault.entityTag,
        },
      };
    case 'unreadable':
      return { status: 500, body: { error: `the list cannot be read: ${fault.text}` } };
    case 'unwritable':
      return { status: 500, body: { error: `the list cannot be written: ${fault.text}` } };
  }
}
