import type { FileJudges } from '../config/named-files.ts';
import { readKeyFiles } from '../protection/file-key-source.ts';

/** The features' own judgement of the files that the configuration names. */
export const fileJudges: FileJudges = {
  keyFiles: async (paths, algorithms) => (await readKeyFiles(paths, algorithms)).problems,
};
