import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Claims } from '../access/claim-paths.ts';
import { errorFormats } from '../http/rejection.ts';
import { badUsage, type CommandIo, escapeToLine, processIo, readInput } from './command-io.ts';
import { isThere, readBounded, replaceFile } from './files.ts';
import { algorithmsAt, probeShop, type ShopFacts } from './init/probe-shop.ts';
import { importList } from './protected/import.ts';

/** Exported for its tests. */
export interface InitOptions {
  /** A Spryker shop: its list, carts with entity tags, its token endpoints and its resolver. */
  readonly spryker?: boolean;
  /** Any other shop: the rows are the operations that need a token by this OpenAPI document. */
  readonly openapi?: string;
  /** Any other shop: the list is written by hand, and until then every request needs a token. */
  readonly blank?: boolean;
  /** Address of the shop; its path is the prefix of all paths of the API. */
  readonly upstream?: string;
  /** URL of the shop's JSON Web Key Set, or a file with its public key. Default: found by asking the shop. */
  readonly keys?: string | undefined;
  /** Environment variable with the secret that the shop signs with (HS256). */
  readonly secret?: string;
  /** Format of the shop's errors. Default: found by asking the shop. */
  readonly errors?: string;
  /** File with a sample access token, `-` for standard input: its `iss` and `aud` become required. */
  readonly token?: string;
  /** Folder that the files are written into. Default `config`. */
  readonly dir?: string;
  /** Whether existing files may be replaced. */
  readonly force?: boolean;
}

/** The options, and the answers of the shop. */
interface Shop extends InitOptions {
  readonly address: URL | undefined;
  /** The prefix of all paths of the API; may be empty. */
  readonly prefix: string;
  readonly facts: ShopFacts | undefined;
  readonly algorithms: readonly string[];
  /** From the sample token, else from the discovery document. */
  readonly issuer: string | undefined;
  /** From the sample token. */
  readonly audience: readonly string[];
  /** `--errors`; else the shop's own format; else `json`. */
  readonly errors: string;
}

/** Bytes of the longest sample: a token of 16 KiB, and text around it. */
const maxTokenBytes = 65_536;
const nothingToList = 1;
const shipped = fileURLToPath(new URL('../../config/', import.meta.url));
const names = {
  config: 'shopward.yaml',
  configSchema: 'shopward.schema.json',
  list: 'protected-resources.yaml',
  listSchema: 'protected-resources.schema.json',
};

/**
 * Writes a configuration, a list and their schemas for editors, in observe mode and with only the features that such a shop has.
 * If the shop's address is given, asks the shop for further settings. Exit code 0; 1 if no operation of the OpenAPI document
 * needs a token; 2 for bad usage, an unreadable document, or existing files: then no file is written.
 */
export async function runInit(options: InitOptions, io: CommandIo = processIo): Promise<number> {
  const problem = findUsageProblem(options);
  if (problem !== undefined) {
    io.err(problem);
    return badUsage;
  }
  const folder = path.resolve(io.cwd, options.dir ?? 'config');
  const at = (name: string) => path.join(folder, name);
  const present = options.force ? [] : Object.values(names).map(at).filter(isThere);
  if (present.length > 0) {
    io.err(`${present.join(', ')}: exists already; --force replaces, --dir writes elsewhere`);
    return badUsage;
  }

  const sample = options.token === undefined ? {} : await readSample(options.token, io);
  if (sample === undefined) return badUsage;
  const shop = await findOut(sample, { ...options, keys: keysFrom(options.keys, io.cwd, folder) });
  await mkdir(folder, { recursive: true });
  // The list comes first, so that an unreadable document leaves no half of a configuration.
  if (options.openapi !== undefined) {
    const list = await importList(options.openapi, shop.prefix || undefined, io);
    if (list === nothingToList) io.err('shopward init --blank writes a list to fill in by hand');
    if (typeof list === 'number') return list;
    await replaceFile(at(names.list), list);
  } else if (options.spryker) {
    await replaceFile(at(names.list), sprykerList(await readShipped('protected-resources.hardened.yaml')));
  } else {
    await replaceFile(at(names.list), blankList(shop.prefix));
  }
  await replaceFile(at(names.config), configText(shop, await readShipped(names.config)));
  for (const name of [names.configSchema, names.listSchema])
    await replaceFile(at(name), await readShipped(name));
  const files = Object.values(names).map((name) => path.join(path.relative(io.cwd, folder) || '.', name));
  io.out(`written: ${files.join(', ')}`);
  for (const line of findings(shop)) io.out(escapeToLine(line));
  io.out(nextSteps(path.relative(io.cwd, folder) || '.', shop, io.env));
  return 0;
}

function findUsageProblem(options: InitOptions): string | undefined {
  const { spryker, openapi, blank, upstream, keys, secret, errors } = options;
  if ([spryker, openapi, blank].filter(Boolean).length !== 1) {
    return 'one of --spryker, --openapi <file> and --blank says what kind of shop it is';
  }
  if (upstream !== undefined && shopAddress(upstream) === undefined) {
    return '--upstream is the address of the shop, such as http://127.0.0.1:9000 or http://127.0.0.1:9000/api/v2';
  }
  if (keys !== undefined && secret !== undefined) return 'give --keys or --secret, not both';
  if (errors !== undefined && !(errorFormats as readonly string[]).includes(errors))
    return `--errors is one of ${errorFormats.join(', ')}: the format in which the shop writes its errors`;
  if (secret !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(secret)) {
    return '--secret names an environment variable, such as JWT_SECRET; the secret itself is not written into files';
  }
  return undefined;
}

/** An http or https URL without user, query and fragment; its path, if any, is the prefix. */
function shopAddress(text: string): URL | undefined {
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.password === '' && !/[?#]/.test(text);
  return isPlain && /^(\/[A-Za-z0-9._~-]+)*\/?$/.test(url.pathname) ? url : undefined;
}

/** The claims of the sample token, unverified. Undefined if it is not a JSON Web Token; the error was printed. */
async function readSample(name: string, io: CommandIo): Promise<Claims | undefined> {
  const { claimsOf, readToken } = await import('./token.ts');
  const text =
    name === '-'
      ? await readInput(io, maxTokenBytes)
      : await readBounded(path.resolve(io.cwd, name), maxTokenBytes).catch(() => '');
  const claims = claimsOf(readToken(text.toString()));
  if (claims === undefined)
    io.err(`--token: ${name === '-' ? 'standard input' : name} contains no JSON Web Token`);
  return claims;
}

async function findOut(sample: Claims, options: InitOptions): Promise<Shop> {
  const address = options.upstream === undefined ? undefined : shopAddress(options.upstream);
  const facts = address && (await probeShop(address));
  const isGiven = options.keys !== undefined || options.secret !== undefined;
  const asked = isGiven ? await algorithmsAt(options.keys) : (facts?.algorithms ?? []);
  return {
    ...options,
    address,
    prefix: address?.pathname.replace(/\/$/, '') ?? '',
    keys: isGiven ? options.keys : facts?.jwks,
    facts: isGiven && facts ? { ...facts, jwks: undefined } : facts,
    errors: options.errors ?? facts?.errors ?? 'json',
    issuer: typeof sample.iss === 'string' ? sample.iss : facts?.issuer,
    audience: [sample.aud].flat().filter((name) => typeof name === 'string'),
    algorithms: options.secret === undefined ? asked : ['HS256'],
  };
}

/** A relative file name starts at the working directory; in the configuration it starts at the configuration file. */
function keysFrom(keys: string | undefined, cwd: string, folder: string): string | undefined {
  if (keys === undefined || isUrl(keys) || path.isAbsolute(keys)) return keys;
  const file = path.resolve(cwd, keys);
  return existsSync(file) ? path.relative(folder, file) : keys;
}

const isUrl = (text: string) => /^https?:\/\//i.test(text);

const readShipped = (name: string) => readFile(path.join(shipped, name), 'utf8');

/** The contract has one route twice, with two names of its parameter; one row is enough. */
const sprykerList = (text: string) => text.replace(/^ +- GET \/customers\/\{customer_id\}\n/m, '');

const blankList = (prefix: string) => `# yaml-language-server: $schema=./${names.listSchema}
#
# Which requests need an access token: a method or ANY, one space, and a path of literals, {name}s and a last **.
# Until you say what is protected, everything is. Put the rows of your shop in place of this one, such as
#   - GET ${prefix}/orders
#   - ANY ${prefix}/orders/{id}
#   - { match: "GET ${prefix}/reports/**", scopes: [analyst] }
#   - { match: "GET ${prefix}/users/{id}/**", require: { id: sub } }
# \`shopward protected import openapi.yaml\` makes rows out of an OpenAPI document.

groups:
  Everything:
    - ANY /**
complete: true
`;

const otherShop = (prefix: string, errors: string) => `
errors: { format: ${errors} } # of refusals: jsonapi, problem (RFC 9457) or json

# Off until you say what your shop has; docs/configuration.md describes each. \`false\` replaces the rest.
# entityTags:                          # no update of these is lost: a change must name the state that it changes
#   resources:
#     - { collection: ${prefix}/baskets, member: "${prefix}/baskets/{id}", methods: [PATCH, PUT, DELETE] }
entityTags: false
# refreshTokens:                       # a refresh token is used once
#   endpoints:
#     - { kind: issue, method: POST, path: ${prefix}/login, format: json }     # OAuth: format: form
#     - { kind: exchange, method: POST, path: ${prefix}/refresh, format: json }
refreshTokens: false
`;

/** The shipped configuration, which its comments explain, with what is known filled in. */
function configText(
  { spryker, address, keys, secret, issuer, audience, algorithms, prefix, errors }: Shop,
  shippedText: string,
): string {
  // The shop's answers must not become references: these could send values of the environment somewhere.
  const quoted = (text: string) => JSON.stringify(text).replaceAll('${', () => '$${');
  const [common = '', resolver = ''] = shippedText.split(/(?=\n# Answers GET \/url-resolver)/);
  let text = common
    .replace(/^mode: enforce\b/m, 'mode: observe')
    .replace('# observe: decide,', '# decide,')
    .replace(/^(mode: .*)$/m, '$1; then: enforce');
  const fill = (line: RegExp, value: string) => {
    text = text.replace(line, () => value);
  };
  if (!spryker) fill(/^request: \{ profile: spryker \}/m, 'request: { profile: plain }');
  if (address !== undefined) fill(/^ {2}url: .*$/m, `  url: ${quoted(address.origin)}`);
  if (secret !== undefined) fill(/^ {2}keys: .*$/m, `  keys: { secret: "\${${secret}}" }`);
  if (keys !== undefined) {
    const source = isUrl(keys) ? `{ jwks: ${quoted(keys)} }` : `{ files: [${quoted(keys)}] }`;
    fill(/^ {2}keys: .*$/m, `  keys: ${source}`);
  }
  if (algorithms.length > 0) fill(/^ {2}algorithms: .*$/m, `  algorithms: [${algorithms.join(', ')}]`);
  if (issuer !== undefined) fill(/^ {2}# issuer: .*$/m, `  issuer: ${quoted(issuer)}`);
  if (audience.length > 0) fill(/^ {2}# audience: .*$/m, `  audience: [${audience.map(quoted).join(', ')}]`);
  return spryker
    ? `${text}  subject: sub.customer_reference # who the user is\n${resolver}`
    : text + otherShop(prefix, errors);
}

/** What the shop's answers told, in words. */
function findings(shop: Shop): string[] {
  const { address, facts, keys, secret, algorithms, prefix, issuer, audience } = shop;
  const missing =
    audience.length > 0
      ? []
      : ['not found: the audience of its tokens. --token names a file with a sample access token'];
  if (address === undefined || facts === undefined) return missing;
  if (facts.fault !== undefined) {
    return [
      `found: no answer from ${address.href} (${facts.fault}): is the address right, and the shop running?`,
    ];
  }
  const found = [
    `found: the shop answers at ${address.origin}${facts.status === undefined ? '' : ` (${facts.status})`}`,
  ];
  for (const text of facts.refused)
    found.push(`warning: ${text}. Fix the shop, or put a server in front of it that rewrites its answers`);
  if (prefix !== '')
    found.push(`found: its paths begin with ${prefix}; rows and endpoints are written with it`);
  if (facts.jwks !== undefined) found.push(`found: its keys, ${facts.jwks} (${algorithms.join(', ')})`);
  else if (keys === undefined && secret === undefined) {
    found.push(
      'not found: its keys. --keys names a key set or a file, --secret a variable with a shared secret',
    );
  }
  if (facts.errors !== undefined) found.push(`found: the format of its errors, ${facts.errors}`);
  else if (!shop.spryker && facts.status !== undefined)
    found.push('not found: the format of its errors. --errors names it; without it, refusals are plain json');
  if (issuer !== undefined) found.push(`found: its issuer, ${issuer}`);
  if (audience.length > 0) found.push(`found: the audience of its tokens, ${audience.join(', ')}`);
  return [...found, ...missing];
}

function nextSteps(folder: string, shop: Shop, env: CommandIo['env']): string {
  const { address, keys, secret, blank } = shop;
  const config = path.join(folder, names.config);
  const needs = [
    ...(address === undefined ? [['UPSTREAM_URL', 'http://your-shop:port']] : []),
    ...(secret === undefined ? [] : [[secret, 'the-secret-of-your-shop']]),
    ...(keys === undefined && secret === undefined ? [['JWKS_URL', 'https://your-shop/jwks.json']] : []),
  ].filter(([name = '']) => !env[name]);
  const given = needs.map(([name, value]) => `${name}=${value} `).join('');
  const named = config === path.join('config', names.config) ? '' : ` --config ${config}`;
  const steps = [
    ...(blank ? [`Add rows to ${path.join(folder, names.list)}; until then everything is protected.`] : []),
    `Check:\n  ${given}shopward check${named}`,
    `Start. Refusals of tokens and writes are only logged and counted (mode: observe):\n  ${given}shopward serve${named}`,
    'Next: docs/quick-start.md; docs/rollout.md leads to mode: enforce in front of a live shop.',
  ];
  return ['', ...steps.map((step, index) => `${index + 1}. ${step}`)].join('\n');
}
