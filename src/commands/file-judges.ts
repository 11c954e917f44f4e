import type { FileJudges } from '../config/named-files.ts';
import { readKeyFiles } from '../protection/file-key-source.ts';
import { parseProtectedList } from '../protection/protected-list.ts';

/** The features' own judgement of the files that the configuration names. */
export const fileJudges: FileJudges = {
  protectedResources: (text, name) => parseProtectedList(text, name).problems,
  keyFiles: async (paths, algorithms) => (await readKeyFiles(paths, algorithms)).problems,
};
