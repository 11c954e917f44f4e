import { type Command, Option } from 'commander';

export const configFile = new Option(
  '-c, --config <file>',
  'configuration file (default: config/shopward.yaml, else /etc/shopward/shopward.yaml)',
);
export const listFile = new Option('--list <file>', 'a list file, instead of the one of the configuration');
export const json = new Option('--json', 'print JSON instead of text');

/** Collects the values of an option that may be repeated; commander's own lists would also take the arguments after it. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** What a verb does with its arguments and options; resolves to the exit code. */
// biome-ignore lint/suspicious/noExplicitAny: commander hands over whatever was declared for the verb
export type Run = (...args: any[]) => Promise<number>;

/** Declares a verb with its examples and exit codes; `name` may be two words, the first that of `parent`. */
export function declareVerb(parent: Command, name: string, description: string, run: Run): Command {
  return parent
    .command(name.split(' ').at(-1) ?? name)
    .description(description)
    .addHelpText('after', helpAfter(name))
    .action(async (...args) => {
      process.exitCode = await run(...args);
    });
}

interface HelpText {
  /** Text before the examples. */
  readonly before?: readonly string[];
  readonly examples: readonly string[];
  /** Exit code -> when. */
  readonly exits: Readonly<Record<number, string>>;
}

const badUsage = 'bad usage';
const badConfiguration = 'bad configuration';

/** What `--help` of a verb shows besides its arguments and options. */
const helpTexts: Readonly<Record<string, HelpText>> = {
  serve: {
    examples: ['shopward', 'shopward serve --config /etc/shopward/shopward.yaml'],
    exits: {
      0: 'drained after SIGTERM or SIGINT',
      1: 'a fault',
      2: badUsage,
      75: 'an address is in use or does not exist yet: start again',
      78: badConfiguration,
    },
  },
  init: {
    before: [
      'Sends a few GET requests to --upstream, to find out whether the shop answers and where its keys are. No existing file is',
      'replaced without --force.',
    ],
    examples: [
      'shopward init --spryker --upstream http://glue.internal:9000 --keys public.pem',
      'shopward init --openapi openapi.yaml --upstream http://127.0.0.1:9000/api/v2',
      'shopward init --blank --upstream http://127.0.0.1:9000 --secret JWT_SECRET',
    ],
    exits: { 0: 'written', 1: 'no operation needs a token', 2: 'bad usage, or a file exists already' },
  },
  check: {
    before: ['Also loads the keys of auth.keys, as the proxy would from here; --offline leaves that out.'],
    examples: ['shopward check', 'shopward check --offline --json --config staging.yaml'],
    exits: { 0: 'no error, perhaps warnings', 1: 'an error', 2: badUsage },
  },
  explain: {
    examples: [
      'shopward explain GET /carts/17',
      `shopward explain 'PATCH https://api.shop.example/carts/17?include=items'`,
      `shopward explain '"POST /carts/17/items HTTP/1.1" 401 71 "-" "curl/8.5.0"'`,
      `shopward explain POST /carts/17 -H 'Content-Type: text/plain' --json`,
      'grep 1b4e28ba /var/log/shopward.log | shopward explain -',
      'pbpaste | shopward explain -        # the clipboard; on Linux: wl-paste, or xclip -o',
    ],
    exits: {
      0: 'explained, whatever would happen',
      1: 'no record has the id',
      2: badUsage,
      78: badConfiguration,
    },
  },
  token: {
    before: [
      "Makes the proxy's checks in the proxy's order, with the clock of this machine and the keys of the configuration. Prints only",
      'the claims that the configuration checks (--claims: all of them), and never the signature.',
    ],
    examples: [
      'shopward token < token.txt',
      "pbpaste | shopward token --path 'PATCH /carts/17'    # on Linux: wl-paste, or xclip -o",
      'shopward token --claims --json < token.txt',
    ],
    exits: {
      0: 'accepted',
      1: 'refused',
      2: badUsage,
      69: 'the keys cannot be loaded',
      78: badConfiguration,
    },
  },
  protected: {
    examples: ['shopward protected diff old.yaml new.yaml', 'shopward protected import openapi.yaml'],
    exits: { 0: 'done, or no difference', 1: 'a difference, or nothing found', 2: badUsage, 78: 'bad list' },
  },
  'protected diff': {
    examples: [
      'shopward protected diff config/protected-resources.yaml config/protected-resources.hardened.yaml',
      'git show HEAD:config/protected-resources.yaml > old.yaml; shopward protected diff old.yaml config/protected-resources.yaml',
    ],
    exits: { 0: 'they are the same', 1: 'they differ', 2: badUsage, 78: 'bad list' },
  },
  'protected import': {
    examples: [
      'shopward protected import schema.yml > protected-resources.yaml',
      'shopward protected import schema.json --base-path / > new.yaml; shopward protected diff config/protected-resources.yaml new.yaml',
    ],
    exits: { 0: 'done', 1: 'no operation needs a token', 2: 'bad usage or document' },
  },
  verify: {
    before: [
      'Compares the deployment with the local configuration and list. Only GET requests are sent. NODE_EXTRA_CA_CERTS=FILE names a',
      'certificate authority of your own.',
    ],
    examples: [
      'shopward verify https://api.shop.example',
      'SHOPWARD_TOKEN=$TOKEN shopward verify https://api.shop.example --resource /carts/17',
      'shopward verify http://127.0.0.1:8080 --json',
      'shopward verify http://127.0.0.1:8080 --inside      # on the machine of the proxy',
    ],
    exits: { 0: 'every check passed', 1: 'a check failed', 2: badUsage, 78: badConfiguration },
  },
  rollout: {
    before: [
      'Asks the admin port of the running proxy. Prints for each row and reason how many requests would have been refused, or were',
      'refused if the row enforces, of how many clients, since when, and what to do next.',
    ],
    examples: ['shopward rollout', 'shopward rollout --json --config /etc/shopward/shopward.yaml'],
    exits: {
      0: 'no request would have been refused for seven days, counted without a gap; or everything is enforced',
      1: 'a request would have been refused',
      2: 'bad usage, or no proxy that answers',
      3: 'no refusal so far, but not for seven days yet, or no request for a row',
      78: badConfiguration,
    },
  },
  purge: {
    examples: [
      'shopward purge --url /en/some-product-134',
      'shopward purge --prefix /de/',
      'shopward purge --all',
    ],
    exits: { 0: 'purged', 1: 'the proxy could not be asked', 2: badUsage, 78: badConfiguration },
  },
  tokens: {
    before: ['Works on the Redis of the configuration. --subject limits list and purge-expired to one user.'],
    examples: [
      'shopward tokens list --subject DE--21',
      'shopward tokens revoke --subject DE--21    # ends all refresh tokens of this user',
      'shopward tokens purge-expired              # deletes what has expired, whatever refreshTokens.retention says',
    ],
    exits: { 0: 'done', 1: 'the store could not do it', 2: badUsage, 78: badConfiguration },
  },
  health: {
    examples: ['shopward health'],
    exits: { 0: '/livez is 200', 1: '/livez is not 200, or nothing answers', 2: badUsage },
  },
};

/** The help below the options: examples and exit codes. */
export function helpAfter(verb: string): string {
  const text = helpTexts[verb];
  if (text === undefined) return '';
  const exits = Object.entries(text.exits).map(([code, when]) => `${code} ${when}`);
  const before = text.before === undefined ? [] : ['', ...text.before];
  const examples = text.examples.map((line) => `  ${line}`);
  return [...before, '', 'Examples:', ...examples, '', `Exit code: ${exits.join(', ')}`].join('\n');
}
