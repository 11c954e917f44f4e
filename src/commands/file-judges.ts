import type { FileJudges } from '../config/named-files.ts';
import type { Problem } from '../config/problem.ts';
import type { PartialConfig } from '../config/schema.ts';
import { readKeyFiles } from '../protection/file-key-source.ts';
import { type ProtectedResources, parseProtectedList } from '../protection/protected-list.ts';
import { findSuspicious } from '../protection/protected-list-suspicion.ts';
import { resourceId } from '../protection/protected-resource.ts';
import { loadMappingFile } from '../url-resolver/mapping-file/load-mapping-file.ts';
import { findOwnEndpoint } from './explain/own-endpoint.ts';

/** The features' own judgement of the files that the configuration names. */
export const fileJudges: FileJudges = {
  protectedResources: (text, name) => parseProtectedList(text, name).problems,
  keyFiles: async (paths, algorithms) => (await readKeyFiles(paths, algorithms)).problems,
  mapping: judgeMapping,
};

async function judgeMapping(path: string, name: string): Promise<Problem[]> {
  const loaded = await loadMappingFile(path);
  if (loaded.kind === 'table') return [];
  return loaded.problems.map(({ line, col, text }) => ({
    file: name,
    line,
    column: col,
    severity: 'error',
    text,
  }));
}

/** The same, with advice that a start need not repeat: rows that are right but probably not what was meant. */
export const adviceJudges: FileJudges = {
  ...fileJudges,
  protectedResources: (text, name, config) => {
    const { list, problems } = parseProtectedList(text, name);
    return list === undefined ? problems : [...problems, ...findVoid(list, config), ...findSuspicious(list)];
  },
};

/** Rows that protect nothing: what shopward answers itself needs no token, whatever the list says. */
function findVoid({ rows }: ProtectedResources, config: PartialConfig): Problem[] {
  return rows.flatMap((row) => {
    const { method, template: path } = row;
    if (method !== 'ANY' && method !== 'GET') return [];
    if (findOwnEndpoint({ method: 'GET', path }, config) === null) return [];
    const text = `${resourceId(row)}: shopward answers GET ${path} itself, and asks for no token`;
    return [{ ...row.source, severity: 'warning', text }];
  });
}
