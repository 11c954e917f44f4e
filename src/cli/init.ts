import { constants } from 'node:fs';
import { access, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { editorSchema, protectedListSchema } from '../config/editor-schema.ts';
import { type CommandIo, processIo } from './command-io.ts';
import { runProtectedImport } from './protected/list.ts';

export interface InitOptions {
  /** A Spryker shop: its list, carts with entity tags, its token endpoints and its resolver. */
  readonly spryker?: boolean;
  /** Any other shop: the rows are the operations that need a token by this OpenAPI document. */
  readonly openapi?: string;
  /** Any other shop, the list to be written by hand: until then every request needs a token. */
  readonly blank?: boolean;
  /** Address of the shop. */
  readonly upstream?: string;
  /** URL of the shop's JSON Web Key Set, or a file with its public key. */
  readonly keys?: string;
  /** Folder that the files are written into. Default `config`. */
  readonly dir?: string;
  /** Whether files that are there may be replaced. */
  readonly force?: boolean;
}

const badUsage = 2;
const shipped = fileURLToPath(new URL('../../config/', import.meta.url));
const names = {
  config: 'shopward.yaml',
  configSchema: 'shopward.schema.json',
  list: 'protected-resources.yaml',
  listSchema: 'protected-resources.schema.json',
};

/**
 * Writes a configuration, a list and their schemas for editors, in observe mode and with only what such a shop has.
 * Exit code 0, 1 when the OpenAPI document has no operation that needs a token, 2 for bad usage, a document that
 * cannot be read, or files that are there already: nothing is written then.
 */
export async function runInit(options: InitOptions, io: CommandIo = processIo): Promise<number> {
  const presets = [options.spryker, options.openapi, options.blank].filter(Boolean);
  if (presets.length !== 1) {
    io.err('one of --spryker, --openapi <file> and --blank says what kind of shop it is');
    return badUsage;
  }
  const folder = path.resolve(io.cwd, options.dir ?? 'config');
  const at = (name: string) => path.join(folder, name);
  const present = options.force ? [] : await presentFiles(Object.values(names).map(at));
  if (present.length > 0) {
    io.err(`${present.join(', ')}: there already; --force replaces, --dir writes elsewhere`);
    return badUsage;
  }

  await mkdir(folder, { recursive: true });
  // The list first: a document that cannot be read leaves no half of a configuration behind.
  if (options.openapi !== undefined) {
    const code = await runProtectedImport(options.openapi, { out: at(names.list), force: true }, io);
    if (code !== 0) return code;
  } else if (options.spryker) {
    await copyFile(path.join(shipped, 'protected-resources.hardened.yaml'), at(names.list));
  } else {
    await writeFile(at(names.list), blankList);
  }
  await writeFile(at(names.config), configText(options, await readShipped()));
  await writeFile(at(names.configSchema), schemaText(editorSchema()));
  await writeFile(at(names.listSchema), schemaText(protectedListSchema));
  io.out(nextSteps(path.relative(io.cwd, folder) || '.', options));
  return 0;
}

const readShipped = () => readFile(path.join(shipped, names.config), 'utf8');
const schemaText = (schema: object) => `${JSON.stringify(schema, null, 2)}\n`;

async function presentFiles(files: readonly string[]): Promise<string[]> {
  const found = files.map(async (file) => ((await isThere(file)) ? [file] : []));
  return (await Promise.all(found)).flat();
}

const isThere = (file: string) =>
  access(file, constants.F_OK).then(
    () => true,
    () => false,
  );

const blankList = `# yaml-language-server: $schema=./${names.listSchema}
#
# Which requests need an access token: a method or ANY, one space, and a path of literals, {name}s and a last **.
# Until you say what is protected, everything is. Put the rows of your shop in place of this one, such as
#   - GET /orders
#   - ANY /orders/{id}
#   - { match: "GET /reports/**", scopes: [analyst] }
# \`shopward protected import openapi.yaml\` makes rows out of an OpenAPI document.

groups:
  Everything:
    - ANY /**
complete: true
`;

const otherShop = `
# Off until you say what your shop has. docs/configuration.md describes each.
# entityTags:                          # no update of these is lost: a change must name the state that it changes
#   resources:
#     - { collection: /baskets, member: "/baskets/{id}", methods: [PATCH, PUT, DELETE] }
entityTags: false
# refreshTokens:                       # a refresh token is used once
#   endpoints:
#     - { kind: issue, method: POST, path: /login, format: form }
#     - { kind: exchange, method: POST, path: /token, format: form }
refreshTokens: false
urlResolver: false
`;

const sprykerShop = `  subject: sub.customer_reference # who the user is
`;

/** The shipped configuration, which its comments explain, with what is known filled in. */
function configText(options: InitOptions, shippedText: string): string {
  const quoted = (text: string) => JSON.stringify(text);
  let text = shippedText
    .replace(/^mode: enforce\b/m, 'mode: observe')
    .replace('# observe: decide,', '# decide,');
  if (options.upstream !== undefined) {
    text = text.replace(/^ {2}url: \S+/m, () => `  url: ${quoted(options.upstream ?? '')}`);
  }
  if (options.keys !== undefined) {
    const isUrl = /^https?:\/\//i.test(options.keys);
    const keys = isUrl ? `{ jwks: ${quoted(options.keys)} }` : `{ files: [${quoted(options.keys)}] }`;
    text = text.replace(/^ {2}keys: .*$/m, () => `  keys: ${keys}`);
  }
  return text + (options.spryker ? sprykerShop : otherShop);
}

function nextSteps(folder: string, { upstream, keys, blank }: InitOptions): string {
  const config = path.join(folder, names.config);
  const needs = [
    ...(upstream === undefined ? ['UPSTREAM_URL=http://your-shop:port'] : []),
    ...(keys === undefined ? ['JWKS_URL=https://your-shop/jwks.json'] : []),
  ].join(' ');
  const run = (verb: string) => `  ${needs}${needs === '' ? '' : ' '}shopward ${verb} --config ${config}`;
  return [
    `written: ${Object.values(names)
      .map((name) => path.join(folder, name))
      .join(', ')}`,
    '',
    ...(blank
      ? [`1. Put your rows into ${path.join(folder, names.list)}: now everything is protected.`]
      : []),
    `${blank ? 2 : 1}. Check:`,
    run('check'),
    `${blank ? 3 : 2}. Start. It decides, logs and counts, and refuses nothing yet (mode: observe):`,
    run('serve'),
    `${blank ? 4 : 3}. docs/rollout.md walks from there to mode: enforce.`,
  ].join('\n');
}
