import { readFileSync } from 'node:fs';
import { type CommandIo, processIo } from './command-io.ts';

const packageFile = new URL('../../package.json', import.meta.url);

/** Version of the package. */
export const version: string = JSON.parse(readFileSync(packageFile, 'utf8')).version;

/** Prints our version and the runtime's, as a report of a fault needs them. */
export async function runVersion(io: CommandIo = processIo): Promise<number> {
  io.out(`shopward ${version}\nnode ${process.version}\n${process.platform} ${process.arch}`);
  return 0;
}
