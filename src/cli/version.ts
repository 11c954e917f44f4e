import { readFileSync } from 'node:fs';
import { type CommandIo, processIo } from './command-io.ts';

const packageFile = new URL('../../package.json', import.meta.url);

/** Version of the package. */
export const version: string = JSON.parse(readFileSync(packageFile, 'utf8')).version;

/** Prints our version and the runtime's, as a report of a fault needs them. */
export async function runVersion(
  { json = false }: { readonly json?: boolean } = {},
  io: CommandIo = processIo,
): Promise<number> {
  const { version: node, platform, arch } = process;
  const text = `shopward ${version}\nnode ${node}\n${platform} ${arch}`;
  io.out(json ? JSON.stringify({ shopward: version, node, platform, arch }) : text);
  return 0;
}
