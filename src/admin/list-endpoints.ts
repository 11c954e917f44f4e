import { hasErrors, type Problem } from '../config/problem.ts';
import { parseProtectedList } from '../protection/protected-list.ts';
import { diffProtectedLists } from '../protection/protected-list-difference.ts';
import { type ProtectedResource, resourceId } from '../protection/protected-resource.ts';
import { type AdminAnswer, fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';
import { type ListFileFault, readListFile, replaceListFile } from './list-file.ts';

export interface ListEditOptions {
  readonly file: string;
  /** `admin.edit`. Reading and checking change nothing, and are always there. */
  readonly isEditable: boolean;
  /** Rows of the list in force, which the difference is to. */
  inForce(): readonly ProtectedResource[];
  /** The file was replaced. */
  onWritten(change: { readonly rows: number; readonly added: number; readonly removed: number }): void;
}

/** A list of 10,000 rows takes some 700 KB; parsing more would hold up requests. */
const maxBodyBytes = 1024 * 1024;

/** `GET /api/list`, `POST /api/list/check` and, with `admin.edit`, `POST /api/list`. */
export function createListEndpoints(options: ListEditOptions): readonly JsonEndpoint[] {
  const { file, isEditable } = options;
  let writing: Promise<unknown> = Promise.resolve();

  const check = (text: string) => {
    const { list, problems } = parseProtectedList(text, file);
    const difference = list && diffProtectedLists({ file, rows: options.inForce() }, list);
    return {
      rows: list?.rows.length ?? 0,
      problems,
      difference: difference && {
        added: difference.added.map(describe),
        removed: difference.removed.map(describe),
        changed: difference.changed.map(({ before, after, what, isLooser }) => ({
          before: describe(before),
          after: describe(after),
          what,
          isLooser,
        })),
      },
    };
  };

  const write = async (text: string, entityTag: string): Promise<AdminAnswer> => {
    const checked = check(text);
    if (checked.difference === undefined || hasErrors(checked.problems as readonly Problem[])) {
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
      run({ body }) {
        const { text } = fieldsOf(body);
        if (typeof text !== 'string') return { status: 400, body: { error: '{"text": text} is needed' } };
        return { status: 200, body: check(text) };
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

function describe(row: ProtectedResource) {
  const { group, scopes, observe, source } = row;
  return { id: resourceId(row), group, scopes, observe, line: source.line };
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
