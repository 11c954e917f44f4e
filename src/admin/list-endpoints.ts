import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, readFile, realpath, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { PackedList } from '../access/packed-list.ts';
import type { PathRules } from '../routes/path-table.ts';
import { type AdminAnswer, fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';
import { checkListInThread, type ListCheck } from './list-check.ts';

interface ListEditOptions {
  readonly file: string;
  /** `admin.edit`: without it the list can be read and checked here, but not replaced. */
  readonly isEditable: boolean;
  readonly paths: PathRules;
  /** The list in force, which a candidate is compared with. */
  inForce(): PackedList;
  /** Called after the file was replaced. */
  onWritten(change: { readonly rows: number; readonly added: number; readonly removed: number }): void;
}

/** A list of 10,000 rows has some 700 KB. */
const maxBodyBytes = 1024 * 1024;

/** Checks one text at a time, however many ask, and writes one edit after the other. */
class ListEditor {
  readonly #options: ListEditOptions;
  #writing: Promise<unknown> = Promise.resolve();
  #checking: Promise<unknown> = Promise.resolve();

  constructor(options: ListEditOptions) {
    this.#options = options;
  }

  check(text: string): Promise<ListCheck> {
    const { file, paths } = this.#options;
    const checked = this.#checking.then(() =>
      checkListInThread({ file, text, paths, inForce: this.#options.inForce() }),
    );
    this.#checking = checked.catch(() => {});
    return checked;
  }

  /** One after the other: of two edits that started from the same content the second must be refused. */
  write(text: string, entityTag: string): Promise<AdminAnswer> {
    const answer = this.#writing.then(() => this.#writeNext(text, entityTag));
    this.#writing = answer.catch(() => {});
    return answer;
  }

  async #writeNext(text: string, entityTag: string): Promise<AdminAnswer> {
    const checked = await this.check(text);
    if (checked.difference === undefined || checked.errors > 0) {
      const error = 'the list has mistakes; nothing was written';
      return { status: 422, body: { error, problems: checked.problems } };
    }
    const written = await replaceListFile(this.#options.file, text, entityTag);
    if ('fault' in written) return faultAnswer(written);
    const { added, removed } = checked.difference.counts;
    this.#options.onWritten({ rows: checked.rows, added, removed });
    return { status: 200, body: { entityTag: written.entityTag, ...checked } };
  }
}

/** `GET /api/list`, `POST /api/list/check` and, with `admin.edit`, `POST /api/list`. */
export function createListEndpoints(options: ListEditOptions): readonly JsonEndpoint[] {
  const { file, isEditable } = options;
  const editor = new ListEditor(options);
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
        if (typeof text !== 'string') return { status: 400, body: { error: 'send {"text": text}' } };
        return { status: 200, body: await editor.check(text) };
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
          const error = 'send {"text": text, "entityTag": text}; GET /api/list gives the entityTag';
          return { status: 400, body: { error } };
        }
        return editor.write(text, entityTag);
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
          error: 'the file has changed since you read it; nothing was written. Read it again and compare',
          entityTag: fault.entityTag,
        },
      };
    case 'unreadable':
      return { status: 500, body: { error: `the list cannot be read: ${fault.text}` } };
    case 'unwritable':
      return { status: 500, body: { error: `the list cannot be written: ${fault.text}` } };
  }
}

/** The list's file as it is now; `entityTag` names its content. */
interface ListFile {
  readonly text: string;
  readonly entityTag: string;
}

/** `changed`: somebody else has written the file since it was read. `text` is for people. */
type ListFileFault =
  | { readonly fault: 'changed'; readonly entityTag: string }
  | { readonly fault: 'unreadable' | 'unwritable'; readonly text: string };

/** Reads the file; one that cannot be read is a fault, never an empty list. Never throws. */
async function readListFile(file: string): Promise<ListFile | ListFileFault> {
  try {
    const bytes = await readFile(file);
    return {
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
      entityTag: tagOf(bytes),
    };
  } catch (cause) {
    return { fault: 'unreadable', text: faultText(cause) };
  }
}

/**
 * Replaces the file, whole or not at all, if its content still is what `entityTag` names: writes a new file beside it with
 * the old one's mode and owner, syncs it, and renames it. A symbolic link stays one. Never throws. Exported for its tests.
 */
export async function replaceListFile(
  file: string,
  text: string,
  entityTag: string,
): Promise<ListFile | ListFileFault> {
  let fresh: string | undefined;
  try {
    const real = await realpath(file);
    const changed = await findChange(real, entityTag);
    if (changed) return changed;
    const bytes = Buffer.from(text);
    fresh = path.join(path.dirname(real), `.${path.basename(real)}.${randomUUID()}.tmp`);
    await writeLike(real, fresh, bytes);
    // Writing took a while: look again, for a rename over somebody's newer edit would lose it.
    const late = await findChange(real, entityTag);
    if (late) return late;
    await rename(fresh, real);
    fresh = undefined;
    await syncFolder(path.dirname(real));
    return { text, entityTag: tagOf(bytes) };
  } catch (cause) {
    return { fault: 'unwritable', text: faultText(cause) };
  } finally {
    if (fresh !== undefined) await unlink(fresh).catch(() => {});
  }
}

async function findChange(real: string, entityTag: string): Promise<ListFileFault | undefined> {
  const now = tagOf(await readFile(real));
  return now === entityTag ? undefined : { fault: 'changed', entityTag: now };
}

async function writeLike(model: string, fresh: string, bytes: Buffer): Promise<void> {
  const old = await open(model, 'r');
  let handle: FileHandle | undefined;
  try {
    const { mode, uid, gid } = await old.stat();
    handle = await open(fresh, 'wx', 0o600);
    await handle.writeFile(bytes);
    // Only root may change the owner; for anybody else the writer becomes the owner.
    await handle.chown(uid, gid).catch(() => {});
    await handle.chmod(mode & 0o7777);
    await handle.sync();
  } finally {
    await handle?.close();
    await old.close();
  }
}

/** Otherwise a crash may undo the rename. Not every file system can sync a folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().catch(() => {});
  await handle.close();
}

function tagOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

const faultTexts: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'shopward may not write there',
  EPERM: 'shopward may not write there',
  EROFS: 'the file system is read-only (a mounted ConfigMap?): edit the list where it comes from',
  EBUSY: 'the file is mounted by itself and cannot be replaced: mount its folder instead',
  ENOSPC: 'no space is left',
};

function faultText(cause: unknown): string {
  if (cause instanceof TypeError) return 'it is not UTF-8';
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? 'unknown fault';
  return faultTexts[code] ?? `the file system says ${code}`;
}
