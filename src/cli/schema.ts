import { editorSchema, protectedListSchema } from '../config/editor-schema.ts';
import { type CommandIo, processIo } from './command-io.ts';

const badUsage = 2;

/** Prints the JSON Schema that an editor uses for one of the two files. */
export async function runSchema(which = 'config', io: CommandIo = processIo): Promise<number> {
  const schemas: Readonly<Record<string, () => object>> = {
    config: editorSchema,
    'protected-resources': () => protectedListSchema,
  };
  if (!Object.hasOwn(schemas, which)) {
    io.err(`there is no schema of that name: ${Object.keys(schemas).join(' or ')} is meant`);
    return badUsage;
  }
  io.out(JSON.stringify(schemas[which]?.(), null, 2));
  return 0;
}
