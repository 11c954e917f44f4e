import { Option } from 'commander';

/** What a verb does with its arguments and options; resolves to the exit code. */
// biome-ignore lint/suspicious/noExplicitAny: commander hands over whatever was declared for the verb
type Run = (...args: any[]) => Promise<number>;

/** A verb: what `--help` and docs/command-line.md say about it, and what it runs. */
export interface Verb {
  readonly description: string;
  readonly arguments?: readonly (readonly [syntax: string, meaning: string])[];
  readonly options?: readonly Option[];
  /** Paragraphs above the examples; lines that begin with `- ` are a list. */
  readonly notes?: readonly string[];
  readonly examples: readonly string[];
  /** Exit code -> when. */
  readonly exits: Readonly<Record<number, string>>;
  /** Loads the code of the verb at its call. Undefined: the name is only the first word of other verbs. */
  readonly load?: () => Promise<Run>;
}

const option = (flags: string, meaning: string) => new Option(flags, meaning);

/** An option that may be given several times; commander's own lists would also take the arguments after it. */
const repeatable = (flags: string, meaning: string) =>
  option(flags, meaning).argParser((value, before: readonly string[] = []) => [...before, value]);

const configFile = option(
  '-c, --config <file>',
  'configuration file (default: config/shopward.yaml, else /etc/shopward/shopward.yaml)',
);
const json = option('--json', 'print JSON instead of text');

const badUsage = 'bad usage';
const badConfiguration = 'bad configuration';

/** A name of two words is a subcommand of the first word. */
export const verbs: Readonly<Record<string, Verb>> = {
  serve: {
    description: 'run the proxy (default)',
    options: [configFile],
    examples: ['shopward', 'shopward serve --config /etc/shopward/shopward.yaml'],
    exits: {
      0: 'drained after SIGTERM or SIGINT',
      1: 'a fault',
      2: badUsage,
      75: 'an address is in use or does not exist yet: start again',
      78: badConfiguration,
    },
    load: async () => (await import('./serve.ts')).runServe,
  },
  init: {
    description: 'write a configuration and a list for a shop',
    options: [
      option('--spryker', 'a Spryker shop: its rows, entity tags, token endpoints and resolver'),
      option('--openapi <file>', 'any shop with an OpenAPI document: the operations that need a token'),
      option('--blank', 'any shop: one row protects everything until you write rows'),
      option('--upstream <url>', 'address of the shop, with the prefix of its paths if there is one'),
      option('--keys <source>', "URL of the shop's JSON Web Key Set, or a file (default: found at the shop)"),
      option('--secret <variable>', "environment variable with the shop's secret, if it signs with HS256"),
      option(
        '--token <file>',
        'sample access token (-: standard input): its issuer and audience become required',
      ),
      option(
        '--errors <format>',
        'how the shop writes errors: jsonapi, problem or json (default: found at the shop)',
      ),
      option('--dir <folder>', 'where the files go (default: config)'),
      option('--force', 'replace existing files'),
    ],
    notes: [
      'One of --spryker, --openapi and --blank is required. GET requests to --upstream find out how the shop writes errors, where its keys are, and whether the proxy would refuse its answers.',
    ],
    examples: [
      'shopward init --spryker --upstream http://glue.internal:9000 --keys public.pem',
      'shopward init --openapi openapi.yaml --upstream http://127.0.0.1:9000/api/v2',
      'shopward init --blank --upstream http://127.0.0.1:9000 --secret JWT_SECRET',
    ],
    exits: { 0: 'written', 1: 'no operation needs a token', 2: 'bad usage, or a file exists already' },
    load: async () => (await import('./init.ts')).runInit,
  },
  check: {
    description: 'validate every file and print all problems',
    options: [option('--offline', 'do not load the keys'), configFile, json],
    notes: [
      'Also loads the keys of auth.keys. Warns of valid but suspicious settings, such as tokens of any audience.',
    ],
    examples: ['shopward check --offline --config staging.yaml'],
    exits: { 0: 'no error, perhaps warnings', 1: 'an error', 2: badUsage },
    load: async () => (await import('./check.ts')).runCheck,
  },
  explain: {
    description: 'print what would happen to a request, or why one was refused',
    arguments: [['<request...>', 'one of the inputs below, or - for standard input']],
    options: [
      repeatable('-H, --header <field>', 'a field of the request, "Name: value"; may be repeated'),
      configFile,
      json,
    ],
    notes: [
      'Runs the code of the proxy, and sends no request to the shop. Fields, bodies and tokens of the input are checked. The inputs:',
      '- a method and a URL or path, or a line of an access log; the default method is GET',
      "- a record of shopward's log, or a request id: the admin port is asked for its record",
      '- a curl command for a POSIX shell ("Copy as cURL (bash)" of a browser)',
      '- a HAR file or an entry of it: the first entry that was refused',
      '- an access token (write Bearer before an opaque one): the same as shopward token',
      '--json prints one object. verdict is refused (malformed), own-endpoint, protected or open. New versions only add keys; a key that does not apply is null or empty.',
    ],
    examples: [
      'shopward explain GET /carts/17',
      `shopward explain 'PATCH https://api.shop.example/carts/17?include=items'`,
      `shopward explain '"POST /carts/17/items HTTP/1.1" 401 71 "-" "curl/8.5.0"'`,
      `shopward explain POST /carts/17 -H 'Content-Type: text/plain'`,
      'grep 1b4e28ba /var/log/shopward.log | shopward explain -',
      'pbpaste | shopward explain -        # the clipboard; on Linux: wl-paste, or xclip -o',
    ],
    exits: {
      0: 'explained, even if the request would be refused',
      1: 'no record has the id, or the file is too large',
      2: badUsage,
      78: badConfiguration,
    },
    load: async () => (await import('./explain.ts')).runExplain,
  },
  token: {
    description: 'say whether the proxy accepts an access token, and why',
    arguments: [
      ['[token]', 'left out or -: read from standard input, which keeps it out of the history of the shell'],
    ],
    options: [
      option('--path <path>', "a path, or 'METHOD PATH': the token needs the scopes of the rows that match"),
      option('--claims', 'also print all claims, as they are'),
      configFile,
      json,
    ],
    notes: [
      "Makes the proxy's checks with the clock of this machine and the keys of the configuration. The signature is never printed.",
    ],
    examples: [
      'shopward token < token.txt',
      "pbpaste | shopward token --path 'PATCH /carts/17'    # the clipboard",
      'shopward token --claims --json < token.txt',
    ],
    exits: {
      0: 'accepted',
      1: 'refused',
      2: badUsage,
      69: 'the keys cannot be loaded',
      78: badConfiguration,
    },
    load: async () => (await import('./token.ts')).runToken,
  },
  protected: {
    description: 'import and compare protected resources',
    examples: ['shopward protected diff old.yaml new.yaml', 'shopward protected import openapi.yaml'],
    exits: { 0: 'done, or no difference', 1: 'a difference, or nothing found', 2: badUsage, 78: 'bad list' },
  },
  'protected diff': {
    description: 'print how the second list differs from the first',
    arguments: [
      ['<a>', 'a list file'],
      ['<b>', 'another one'],
    ],
    notes: ['LOOSER marks a route that asks for less in the second list.'],
    examples: [
      'shopward protected diff config/protected-resources.yaml config/protected-resources.hardened.yaml',
    ],
    exits: { 0: 'they are the same', 1: 'they differ', 2: badUsage, 78: 'bad list' },
    load: async () => (await import('./protected/difference.ts')).runProtectedDiff,
  },
  'protected import': {
    description: 'print a list from an OpenAPI 3 document: the operations that need a token',
    arguments: [['<openapi>', 'JSON or YAML']],
    options: [option('--base-path <path>', "path prefix, in place of the document's servers; / for none")],
    notes: [
      '- An operation is left out if its security is [] or has the alternative {}. Scopes that every alternative asks for become scopes of the row.',
      '- A part of a path that a list cannot express becomes a parameter, so the row matches more: /files/{name}.pdf is /files/{name_pdf}.',
      '- A document that refers to other files is refused: bundle it first.',
    ],
    examples: ['shopward protected import schema.yml > protected-resources.yaml'],
    exits: { 0: 'done', 1: 'no operation needs a token', 2: 'bad usage or document' },
    load: async () => (await import('./protected/import.ts')).runProtectedImport,
  },
  verify: {
    description: 'check a running deployment from outside',
    arguments: [['<url>', 'where clients reach it']],
    options: [
      configFile,
      option('--token <token>', 'an access token; better in the variable SHOPWARD_TOKEN'),
      repeatable('--resource <path>', 'a resource with an ETag, such as /carts/17; may be repeated'),
      option('--inside', 'this machine may reach the shop: check its answers instead of its port'),
      option('--timeout <seconds>', 'for one request').default('10'),
      option('--deadline <seconds>', 'for the whole run').default('120'),
      json,
    ],
    notes: [
      'Sends GET requests, and compares the answers with the local configuration and list. A check passes when:',
      "- clock: the proxy's Date differs by at most 30 s, or auth.clockTolerance if that is longer",
      '- rows: each GET row is refused without a token, with the configured status and code',
      '- spelling: other spellings of a row are refused too',
      '- token: a forged token is refused, and the given token is accepted',
      '- list: /protected-resources equals the local list, for all methods',
      '- tags: a member of each tracked resource has a strong ETag, gives 304, and arrives unaltered with gzip',
      "- shop: the port of upstream.url is closed to this machine; with --inside (or loopback): the proxy takes the shop's answers",
      'Run it with --inside beside the proxy before you go live: the proxy refuses malformed answers of the shop. The token is never printed, nor sent over untrusted TLS (NODE_EXTRA_CA_CERTS=FILE names an authority).',
      '--json gives { url, ok, counts: { ok, failed, skipped }, checks: [{ area, name, outcome, expected, got, advice? }] }.',
    ],
    examples: [
      'shopward verify https://api.shop.example',
      'SHOPWARD_TOKEN=$TOKEN shopward verify https://api.shop.example --resource /carts/17',
      'shopward verify http://127.0.0.1:8080 --inside      # on the machine of the proxy',
    ],
    exits: { 0: 'every check passed', 1: 'a check failed', 2: badUsage, 78: badConfiguration },
    load: async () => (await import('./verify.ts')).runVerify,
  },
  rollout: {
    description: 'say whether it is safe to enforce, which requests would be refused, and what to do',
    options: [configFile, json],
    notes: [
      'Asks the admin port. Prints for each row and reason how many requests would have been refused or were refused, from how many clients, since when, and what to do next.',
    ],
    examples: ['shopward rollout'],
    exits: {
      0: 'no request would have been refused for seven days, counted without a gap; or everything is enforced',
      1: 'a request would have been refused',
      2: 'bad usage, or no proxy that answers',
      3: 'no refusal so far, but for less than seven days, or a row had no request',
      78: badConfiguration,
    },
    load: async () => (await import('./rollout.ts')).runRollout,
  },
  purge: {
    description: 'delete cached URL mappings, in every replica',
    options: [
      configFile,
      option('--url <url>', 'one URL'),
      option('--prefix <prefix>', 'every URL that begins with it'),
      option('--all', 'every URL'),
    ],
    notes: ['Asks the admin port on this machine.'],
    examples: ['shopward purge --url /en/some-product-134', 'shopward purge --prefix /de/'],
    exits: { 0: 'purged', 1: 'no proxy answered, or the purge failed', 2: badUsage, 78: badConfiguration },
    load: async () => (await import('./admin-verbs.ts')).runPurge,
  },
  tokens: {
    description: 'list or revoke refresh tokens, or delete expired ones',
    arguments: [['<action>', 'list, revoke or purge-expired']],
    options: [configFile, option('--subject <name>', 'only tokens of this user; required for revoke'), json],
    notes: ['Works on the Redis of the configuration.'],
    examples: [
      'shopward tokens list --subject DE--21',
      'shopward tokens revoke --subject DE--21    # ends all refresh tokens of this user',
      'shopward tokens purge-expired              # deletes what has expired, whatever refreshTokens.retention says',
    ],
    exits: { 0: 'done', 1: 'the store failed', 2: badUsage, 78: badConfiguration },
    load: async () => (await import('./tokens.ts')).runTokens,
  },
  health: {
    description: 'ask /livez of the running proxy (for container health checks)',
    options: [configFile],
    examples: ['shopward health'],
    exits: { 0: '/livez is 200', 1: '/livez is not 200, or nothing answers', 2: badUsage },
    load: async () => (await import('./admin-verbs.ts')).runHealth,
  },
};
