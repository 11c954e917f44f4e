import { hash } from 'node:crypto';
import { conditionTexts } from '../access/claim-conditions.ts';
import { readKeyFiles } from '../access/key-document.ts';
import { checkListAside } from '../access/list-check.ts';
import { openRows, type PackedList } from '../access/packed-list.ts';
import type { RowSequence } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import type { FileValidators } from '../config/named-files.ts';
import type { PartialConfig } from '../config/schema.ts';
import type { Problem } from '../lib/problem.ts';
import { loadMappingFile } from '../url-resolver/mapping-file/mapping-file.ts';

/** The features' own checks of the files that the configuration names. */
export const fileValidators: FileValidators = {
  protectedResources: (text, name) => {
    const { list, problems } = parseProtectedList(text, name);
    const remark = list && remarkOnContractList(list);
    return remark === undefined ? problems : [remark];
  },
  keyFiles: async (paths, algorithms) => (await readKeyFiles(paths, algorithms)).problems,
  mapping: validateMapping,
};

/** The same checks for a start, which keeps the compiled list. */
export function startValidators(): FileValidators & { packed?: PackedList } {
  const validators: FileValidators & { packed?: PackedList } = {
    ...fileValidators,
    protectedResources: async (text, file, { request: paths = { ignoredPrefixes: [] } }) => {
      let remark: Problem | undefined;
      const take = (packed: PackedList) => {
        validators.packed = packed;
        remark = remarkOnContractList({ file, ...openRows(packed, file) });
      };
      const check = checkListAside({ file, text, paths, inForce: undefined }, take);
      const { problems } = await check.catch(({ message }) => ({
        problems: [firstLine(file, 'error', message)],
      }));
      return remark === undefined ? problems : [remark];
    },
  };
  return validators;
}

async function validateMapping(
  path: string,
  name: string,
  { urlResolver }: PartialConfig,
): Promise<Problem[]> {
  const loaded = await loadMappingFile({
    path,
    ...(urlResolver && { entityTypes: urlResolver.entityTypes }),
  });
  if (!('problems' in loaded)) return [];
  return loaded.problems.map((problem) => ({ ...problem, file: name }));
}

/** One remark in place of all problems of the contract's own list, whose omissions are known. */
export function remarkOnContractList({ rows: all, file }: NamedRows): Problem | undefined {
  if (all.length !== contractRows) return undefined;
  const rows = [...all];
  const isPlain = rows.every((row) => row.scopes.length + conditionTexts(row).length === 0 && !row.observe);
  const keys = rows.map((row) => `${row.method} ${row.template}`).toSorted();
  if (!isPlain || hash('sha256', keys.join('\n')) !== contractDigest) return undefined;
  const text =
    'this is the default list; protected-resources.hardened.yaml adds the routes that a Spryker shop protects itself';
  return firstLine(file, 'warning', text);
}

function firstLine(file: string, severity: Problem['severity'], text: string): Problem {
  return { file, line: 1, column: 1, severity, text };
}

type NamedRows = { readonly file: string; readonly rows: RowSequence };
const contractRows = 56;
/** SHA-256 of the shipped list's rows, sorted, one a line. */
const contractDigest = '437b8fa7a5e4933d5b42b5da2652162ca9a77b0d1048746e178f3ef6eeca9268';
