import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultUrls } from '../../../src/config/defaults.ts';
import { configJsonSchema } from '../../../src/config/json-schema.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/lib/problem.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';
import { keys, loadGood, loadText, makeFolder, problemLines } from './config-folder.ts';

describe('a section', () => {
  it.each(['admin', 'entityTags', 'urlResolver', 'refreshTokens'] as const)(
    '%s may be false',
    async (key) => {
      expect((await loadGood(`${keys}\n${key}: false\n`)).config[key]).toBe(false);
    },
  );

  it('of the shop or the store takes its URL from the environment, even if the key is missing', async () => {
    const env = { UPSTREAM_URL: 'http://Shop:81/', REDIS_URL: 'redis://r' };
    const { config } = await loadGood(`${keys}\nupstream: { via: true }\n`, { env });
    expect(config.upstream).toMatchObject({ url: 'http://shop:81', via: true });
    expect(config.store.url).toMatchObject({ kind: 'single', hosts: [{ host: 'r', port: 6379 }] });
  });
});

it('the configuration is deeply frozen', async () => {
  const { config } = await loadGood(keys);
  const thawed: unknown[] = [];
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return;
    if (!Object.isFrozen(value)) thawed.push(value);
    for (const child of Object.values(value)) visit(child);
  };
  visit(config);
  expect(thawed).toEqual([]);
});

it('keeps the named fields of a token endpoint, and adds those of its format', async () => {
  const text = `${keys}
refreshTokens:
  endpoints: [{ kind: exchange, method: POST, path: /token, format: form, fields: { refreshToken: rt } }]
`;
  const { config } = await loadGood(text);
  const fields = { accessToken: 'access_token', refreshToken: 'rt', refreshExpiresIn: 'refresh_expires_in' };
  const endpoint = { kind: 'exchange', method: 'POST', path: '/token', format: 'form', fields };
  expect(config).toHaveProperty('refreshTokens.endpoints', [endpoint]);
});

describe('references', () => {
  it('get the type that the schema requires', async () => {
    const text = `auth: { keys: { secret: "\${file:secret}" }, algorithms: "\${ALGS}", issuer: "\${ISS}" }
listen: { port: "\${PORT}" }
admin: \${ADMIN:-false}
upstream: { via: "\${VIA}", url: "http://\${HOST}:\${UPPORT:-90}" }
trustedProxies: \${PROXIES}
trustedFields: \${FIELDS:-}
rejections: { access-token-missing: { status: "\${STATUS}", code: "\${STATUS}", detail: "$\${x} costs $5" } }
limits: { requestBody: "\${BODY}", requestHeaders: "\${HEADERS}" }
`;
    const env = {
      ...{ PORT: '0', VIA: 'true', HOST: 'shop', UPPORT: '', PROXIES: '10.0.0.0/8, ::1', ISS: 'true' },
      ...{ STATUS: '403', ALGS: 'HS256', BODY: '4096', HEADERS: '8KiB' },
    };
    const secret = '0'.repeat(40);
    const { config } = await loadGood(text, { env, files: { secret: `${secret}\n` } });
    expect(config).toMatchObject({
      auth: { keys: { secret }, algorithms: ['HS256'], issuer: 'true' },
      listen: { port: 0 },
      admin: false,
      upstream: { via: true, url: 'http://shop:90' },
      trustedProxies: ['10.0.0.0/8', '::1'],
      trustedFields: [],
      rejections: { 'access-token-missing': { status: 403, code: '403', detail: '${x} costs $5' } },
      limits: { requestBody: 4096, requestHeaders: 8192 },
    });
  });

  it('of defaults are the same in the schema and in the table of defaults', () => {
    const sections = Object.entries(configJsonSchema().properties ?? {});
    const described = sections.flatMap(([section, { properties = {} }]) =>
      Object.entries(properties).flatMap(([key, { reference }]) =>
        reference === undefined ? [] : [[`${section}.${key}`, reference]],
      ),
    );
    const filledIn = Object.entries(defaultUrls).map(([section, url]) => [`${section}.url`, url]);
    expect(described).toEqual(filledIn);
    expect(JSON.stringify(configJsonSchema()).split('"reference":')).toHaveLength(filledIn.length + 1);
  });

  it('are not expanded again in their result', async () => {
    const { config } = await loadGood(`${keys}\nprotectedResources: \${A}\n`, {
      env: { A: '${B}', B: 'x' },
      files: { '${B}': '' },
    });
    expect(path.basename(config.protectedResources)).toBe('${B}');
  });

  const meant = 'a variable, a variable with :-default, or file: and a path is meant';
  it.each([
    ['${NOT_SET}', 'needs the environment variable NOT_SET, which is not set'],
    ['x${NOT_SET}', 'needs the environment variable NOT_SET, which is not set'],
    ['${__proto__}', 'needs the environment variable __proto__, which is not set'],
    ['${toString}', 'needs the environment variable toString, which is not set'],
    ['${A', 'has a reference without its closing brace'],
    ['${}', `has a malformed reference: ${meant}`],
    ['${A-b}', `has a malformed reference: ${meant}`],
    ['${file:gone}', 'names a file that cannot be read: there is no such file'],
    ['${file:}', 'names a file that cannot be read: it is a directory'],
    ['${EMPTY}', 'must not be empty'],
    ['${file:bytes}', 'names a file that cannot be read: it is not UTF-8'],
  ])('that are faulty are reported: %s', async (value, problem) => {
    const given = { env: { EMPTY: '' }, files: { bytes: Uint8Array.of(0xff) } };
    const text = `auth:\n  keys: { jwks: "https://a/b" }\n  issuer: '${value}'\n`;
    expect(await problemLines(text, given)).toEqual([`c.yaml:3:11: error: auth.issuer ${problem}`]);
  });

  it('in the wrong setting are reported unexpanded', async () => {
    const given = { env: { SECRET: 'hunter2' }, files: { token: 'hunter3' } };
    const text =
      'auth: { keys: { files: ["${SECRET}", "x/${file:token}"] } }\nprotectedResources: "${SECRET}"\n';
    const lines = await problemLines(text, given);
    expect(lines.join('\n')).not.toContain('hunter');
    expect(lines).toEqual(
      expect.arrayContaining([
        'c.yaml:1:25: error: auth.keys.files[0] names ${SECRET}: there is no such file',
        'c.yaml:2:21: error: protectedResources names ${SECRET}: there is no such file',
      ]),
    );
  });
});

describe('files', () => {
  it('are named relative to the configuration file', async () => {
    const cwd = makeFolder({
      'etc/c.yaml': `auth: { keys: { files: [keys/a.pem] } }
protectedResources: lists/p.yaml
urlResolver: { source: [urls.csv, upstream] }
listen: { tls: { cert: c.pem, key: k.pem } }
`,
      'etc/lists/p.yaml': 'list',
      'etc/keys/a.pem': 'key',
      'etc/urls.csv': '',
      'etc/c.pem': testCertificate,
      'etc/k.pem': testKey,
    });
    const result = await loadConfig({ file: 'etc/c.yaml', env: {}, cwd });
    if ('problems' in result) throw new Error(result.problems.map(formatProblem).join('\n'));
    const { config, files } = result;
    const at = (name: string) => path.join(cwd, 'etc', name);
    expect(config).toMatchObject({
      protectedResources: at('lists/p.yaml'),
      auth: { keys: { files: [at('keys/a.pem')] } },
      urlResolver: { source: { file: at('urls.csv'), upstream: true } },
      listen: { tls: { cert: at('c.pem'), key: at('k.pem') } },
    });
    expect(files.map(({ role, name }) => [role, name])).toEqual([
      ['config', 'etc/c.yaml'],
      ['protected-resources', 'etc/lists/p.yaml'],
      ['listen.tls.cert', 'etc/c.pem'],
      ['listen.tls.key', 'etc/k.pem'],
      ['key', 'etc/keys/a.pem'],
      ['mapping', 'etc/urls.csv'],
    ]);
    expect(files.find(({ role }) => role === 'protected-resources')?.text).toBe('list');
  });

  it('are checked by their features, and all problems are reported together', async () => {
    const problem = { line: 2, column: 3, severity: 'error', text: 'no such method' } as const;
    const validators = {
      protectedResources: (text: string, file: string) => (text === 'list' ? [{ ...problem, file }] : []),
      keyFiles: async (paths: readonly string[]) => [
        { file: paths[1], text: 'is too short' },
        { file: undefined, text: 'no key here' },
      ],
    };
    const files = { 'protected-resources.yaml': 'list', 'a.pem': '', 'b.pem': '' };
    const text = 'auth: { keys: { files: [a.pem, b.pem] } }\nmode: x\n';
    expect(await problemLines(text, { files, validators })).toEqual([
      'c.yaml:1:24: error: auth.keys.files cannot be used: no key here',
      'c.yaml:1:32: error: auth.keys.files[1] names b.pem: is too short',
      'c.yaml:2:7: error: mode must be one of enforce, observe',
      'protected-resources.yaml:2:3: error: no such method',
    ]);
  });

  it('with only warnings are accepted', async () => {
    const warning = { file: 'p', line: 1, column: 1, severity: 'warning', text: 'two rows overlap' } as const;
    const { warnings } = await loadGood(`${keys}\nauthorize: { listen: { port: 8082 } }\n`, {
      validators: { protectedResources: () => [warning] },
    });
    expect(warnings.map(formatProblem)).toEqual([
      'c.yaml:2:12: warning: authorize answers each question with 403: trustedProxies is empty',
      'p:1:1: warning: two rows overlap',
    ]);
  });
});

describe('the configuration file itself', () => {
  it('is config/shopward.yaml when none is named', async () => {
    const cwd = makeFolder({
      'config/shopward.yaml': `${keys}\nmode: x\n`,
      'config/protected-resources.yaml': '',
    });
    const result = await loadConfig({ env: {}, cwd });
    expect('problems' in result && result.problems.map(formatProblem)).toEqual([
      'config/shopward.yaml:2:7: error: mode must be one of enforce, observe',
    ]);
  });

  it('must exist', async () => {
    const named = await loadConfig({ file: 'x.yaml', env: {}, cwd: makeFolder() });
    expect('problems' in named && named.problems.map(formatProblem)).toEqual([
      'x.yaml:1:1: error: the configuration cannot be read: there is no such file',
    ]);
    const found = await loadConfig({ env: {}, cwd: makeFolder() });
    expect('problems' in found && found.problems.map(formatProblem)).toEqual([
      'config/shopward.yaml:1:1: error: there is no configuration: neither config/shopward.yaml nor /etc/shopward/shopward.yaml exists; name one with --config FILE',
    ]);
  });

  it('may begin with a byte order mark and have CRLF line ends', async () => {
    expect('config' in (await loadText(`\uFEFFmode: enforce\r\n${keys}\r\n`))).toBe(true);
  });
});
