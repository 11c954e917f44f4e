import { writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExplainedPaste } from '../../src/cli/explain/explain-pasted.ts';
import { readFetch, readHar } from '../../src/cli/explain/pasted-code.ts';
import { readCurl } from '../../src/cli/explain/pasted-command.ts';
import { readPastedRequest, tokenHint } from '../../src/cli/explain/pasted-request.ts';
import { splitCmd, splitShell } from '../../src/cli/explain/shell-words.ts';
import { runExplain } from '../../src/cli/explain.ts';
import { makeFolder } from '../config/config-folder.ts';
import { anyText } from '../harness/any-text.ts';
import { runCommand } from './command-run.ts';
import { listOf } from './openapi-sample.ts';

const secret = 'a-secret-of-32-octets-or-more-1234';
const config = `auth: { algorithms: [HS256], keys: { secret: ${secret} }, maxTokenAge: none }\n`;
const rows = ['GET /carts/{id}', 'PATCH /carts/{id}', '{ match: "GET /reports", scopes: [analyst] }'];

function folderWith(files: Record<string, string> = {}, more = '') {
  return makeFolder({
    'config/shopward.yaml': config + more,
    'config/protected-resources.yaml': listOf(...rows),
    ...files,
  });
}

async function explain(text: string, { log = [] as string[], cwd = folderWith() } = {}) {
  const { code, out, err } = await runCommand((io) => runExplain([text], { log, json: true }, io), { cwd });
  return { code, err, explained: JSON.parse(out.join('\n') || '{}') as ExplainedPaste };
}

describe('words of a command', () => {
  it.each([
    [`a 'b c' "d \\"e" f\\ g`, ['a', 'b c', 'd "e', 'f g']],
    [`a $'b\\'c\\n\\x41\\u00e9' ''`, ['a', "b'c\nA\u00e9", '']],
    [`a \\\n  b \\\r\n c`, ['a', 'b', 'c']],
    [`a b | jq . ; rm x`, ['a', 'b']],
    [`a https://x/y?a=1&b=2 > out`, ['a', 'https://x/y?a=1&b=2']],
    [`a 'open`, ['a', 'open']],
  ])('of a shell: %j', (text, words) => expect(splitShell(text)).toEqual(words));

  it.each([
    ['a ^"b c^" ^\r\n  -d ^"^{^\\^"x^\\^":1^}^"', ['a', 'b c', '-d', '{"x":1}']],
    ['a "b ^ c" d', ['a', 'b ^ c', 'd']],
    ['a ^"50^%^" "\\\\server\\"', ['a', '50%', '\\\\server"']],
  ])('of cmd: %j', (text, words) => expect(splitCmd(text)).toEqual(words));

  it('are those that were quoted, whatever they hold', () => {
    const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
    const word = anyText();
    fc.assert(
      fc.property(fc.array(word), (words) => {
        expect(splitShell(words.map(quote).join(' '))).toEqual(words);
      }),
    );
  });
});

describe('a curl command', () => {
  const of = (text: string) => readCurl(`curl ${text}`);
  const json = ['Content-Type', 'application/json'];
  const form = ['Content-Type', 'application/x-www-form-urlencoded'];

  it.each([
    ['https://s/a', { method: 'GET', url: 'https://s/a', fields: [], body: undefined }],
    ['-XPATCH https://s/a', { method: 'PATCH' }],
    ['-sSX patch https://s/a', { method: 'patch' }],
    [`-d a=1 -d b=2 https://s/a`, { method: 'POST', body: 'a=1&b=2', fields: form }],
    [`--data-raw @x https://s/a`, { body: '@x' }],
    [`--data-urlencode 'a=b c' https://s/a`, { body: 'a=b%20c' }],
    [
      `--json '{"a":1}' https://s/a`,
      { method: 'POST', body: '{"a":1}', fields: [...json, 'Accept', 'application/json'] },
    ],
    [
      `-d '{}' -H 'content-type: application/json' https://s/a`,
      { fields: ['content-type', 'application/json'] },
    ],
    [`-d x -H 'Content-Type:' https://s/a`, { fields: [] }],
    [`-H 'X-Empty;' https://s/a`, { fields: ['X-Empty', ''] }],
    [`-G -d a=1 'https://s/a?b=2#c'`, { method: 'GET', url: 'https://s/a?b=2&a=1', body: undefined }],
    ['-I https://s/a', { method: 'HEAD' }],
    ['-T file https://s/a', { method: 'PUT' }],
    ['-b a=1 -u u:p https://s/a', { fields: ['Cookie', 'a=1', 'Authorization', 'Basic dTpw'] }],
    ['--oauth2-bearer t https://s/a', { fields: ['Authorization', 'Bearer t'] }],
    [
      '-A me -e you -r 0-1 https://s/a',
      { fields: ['User-Agent', 'me', 'Referer', 'you', 'Range', 'bytes=0-1'] },
    ],
    ['https://s/a/../b/./c?x=/../', { url: 'https://s/b/c?x=/../' }],
    ['--path-as-is https://s/a/../b', { url: 'https://s/a/../b' }],
    ['--request-target /raw https://s/a', { target: '/raw' }],
    ['-0 https://s/a', { version: '1.0' }],
    ['--url https://s/a -o /dev/null', { url: 'https://s/a' }],
  ])('%s', (text, expected) => expect(of(text)).toMatchObject(expected));

  it('has the body of its form', () => {
    const read = of(`-F a=1 -F 'b="2"' -F f=@x.png https://s/a`);
    expect(read?.method).toBe('POST');
    expect(read?.fields[1]).toMatch(/^multipart\/form-data; boundary=/);
    expect(read?.body).toContain('name="b"\r\n\r\n"2"\r\n');
    expect(read?.notes).toContain('-F f=@x.png: what that file holds is not known');
  });

  it.each([
    ['-sSL -k --compressed -o x --max-time 3 https://s/a', '-s -S -L -k -o --max-time'],
    ['--frob https://s/a', '--frob'],
  ])('%s: names what plays no part', (text, unused) => {
    expect(of(text)?.url).toBe('https://s/a');
    expect(of(text)?.notes).toContain(`of curl's options these play no part: ${unused}`);
  });

  it.each(['-d @body.json', '-H @fields', '-b jar.txt', '-T file'])(
    '%s: names what it cannot know',
    (option) => {
      expect(of(`${option} https://s/a`)?.notes.join()).toContain(`${option}: `);
    },
  );
});

describe('a call of fetch', () => {
  it.each([
    [
      `fetch("https://s/a?x=1", {\n  "headers": {\n    "content-type": "application/json",\n  },\n  "referrer": "https://p/",\n  "body": "{\\"a\\":\\"\\u00e9\\"}",\n  "method": "PATCH",\n  "mode": "cors",\n  "credentials": "include"\n});`,
      {
        method: 'PATCH',
        url: 'https://s/a?x=1',
        fields: ['content-type', 'application/json', 'Referer', 'https://p/'],
        body: '{"a":"\u00e9"}',
      },
    ],
    [
      `await fetch('https://s/a', { method: 'post', headers: new Headers({ A: 'b' }), body: JSON.stringify({ a: [1, true, null] }) })`,
      {
        method: 'POST',
        body: '{"a":[1,true,null]}',
        fields: ['A', 'b', 'Content-Type', 'text/plain;charset=UTF-8'],
      },
    ],
    [`fetch("https://s/a", { method: 'patch' })`, { method: 'patch' }],
    [`fetch("https://s/a/%2e%2e/b\\\\c")`, { url: 'https://s/b/c' }],
    [`fetch(\`https://s/a\`, { headers: [["A", "b"]] })`, { url: 'https://s/a', fields: ['A', 'b'] }],
  ])('%s', (text, expected) => expect(readFetch(text)).toMatchObject(expected));

  it('names what is no literal, and keeps what was read before it', () => {
    const text = 'fetch("https://s/a", { method: "PUT", headers: { A: `x${token}` }, body })';
    expect(readFetch(text)).toMatchObject({ method: 'PUT', url: 'https://s/a' });
    expect(readFetch(text)?.notes).toContainEqual(expect.stringMatching(/^from "\$\{token\}` \}, body/));
  });

  it('runs nothing, and ends whatever is nested', () => {
    for (const sign of ['[', '{a:', 'JSON.stringify(', '"\\', '`${', '//', '\\u{']) {
      expect(readFetch(`fetch(${sign.repeat(16_000)}`)?.url).toBe('/');
    }
  });
});

describe('a HAR file', () => {
  const entry = (status: number, url: string) => ({
    request: {
      method: 'POST',
      url,
      headers: [
        { name: ':authority', value: 's' },
        { name: 'content-type', value: 'application/json' },
        { name: 'content-length', value: '999' },
      ],
      postData: { mimeType: 'application/json', text: '{}' },
    },
    response: { status },
  });
  const log = { log: { entries: [entry(200, 'https://s/a'), entry(401, 'https://s/carts/1')] } };

  it('is read at the first entry that was refused', () => {
    expect(readHar(log)).toEqual({
      method: 'POST',
      url: 'https://s/carts/1',
      fields: ['content-type', 'application/json'],
      body: '{}',
      notes: ['entry 2 of 2 of a HAR file: the first one that was refused'],
    });
    expect(readPastedRequest(JSON.stringify(entry(200, 'https://s/a'))).target).toBe('/a');
  });

  it('is found by its name', async () => {
    const cwd = folderWith({ 'session.har': JSON.stringify(log) });
    const { explained } = await explain('session.har', { cwd });
    expect(explained.request).toEqual({ method: 'POST', target: '/carts/1', host: 's' });
  });
});

describe('fields and body are decided on', () => {
  it.each([
    ['curl https://s/carts/1', 'access-token-missing', 'missing'],
    [`curl https://s/carts/1 -H 'Authorization: Bearer x'`, 'access-token-invalid', 'malformed'],
    [`curl https://s/carts/1 -u u:p`, 'access-token-invalid', 'other-scheme'],
    [`curl https://s/x -X POST -H 'X-HTTP-Method-Override: DELETE'`, 'method-override', undefined],
    [`curl https://s/x -X GET -d a`, 'unexpected-body', undefined],
    [`curl https://s/x -H 'Host: a b'`, 'bad-host', undefined],
    [
      `curl https://s/refresh-tokens --json '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"r","refreshToken":"s"}}}'`,
      'token-request-not-plain',
      'repeated',
    ],
    [
      `curl https://s/refresh-tokens -d '{}' -H 'Content-Type: text/plain'`,
      'token-request-not-plain',
      'content-type',
    ],
    [`fetch("https://s/x", { method: 'patch' })`, 'method-not-allowed', undefined],
  ])('%s', async (text, rejection, reason) => {
    const { explained } = await explain(text);
    expect(explained.refusal).toMatchObject({
      rejection,
      ...(reason && { reason }),
      see: `docs/reasons.md#${rejection === 'access-token-invalid' ? reason : rejection}`,
    });
    expect(explained.forward).toBeNull();
  });

  it('a refresh token in the body is seen, and not printed', async () => {
    const body = '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"very-secret"}}}';
    const { explained } = await explain(`curl https://s/refresh-tokens --json '${body}'`);
    expect(JSON.stringify(explained)).not.toContain('very-secret');
    expect(explained.filters.map(({ found }) => found).join()).toContain('holds a refresh token');
    expect(explained.refusal).toBeNull();
  });

  it('observe mode notes what it would refuse', async () => {
    const cwd = folderWith({}, 'mode: observe\n');
    const { explained } = await explain('curl https://s/carts/1', { cwd });
    expect(explained).toMatchObject({ refusal: null, observed: { rejection: 'access-token-missing' } });
    expect(explained.forward).not.toBeNull();
  });
});

describe('a record of our log', () => {
  const id = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427';
  const record = (more: object) =>
    JSON.stringify({ level: 'info', requestId: id, decision: 'refused', route: '*', ...more });

  it.each([
    [{ method: 'other', path: '', status: 400, rejection: 'bad-request', reason: 'invalid-header-token' }],
    [
      {
        method: 'GET',
        path: '/carts',
        status: 431,
        rejection: 'fields-too-large',
        reason: 'header-overflow',
      },
    ],
    [{ method: 'GET', path: '', status: 408, rejection: 'request-timeout' }],
  ])('that is malformed is explained as refused: %j', async (more) => {
    const { explained } = await explain(record(more));
    expect(explained).toMatchObject({
      verdict: 'refused',
      refusal: { rejection: more.rejection },
      forward: null,
    });
    expect(explained.notes.join()).toContain('malformed: it was not understood');
  });

  it('stands beside what the list says', async () => {
    const text = `[16:03:53] INFO: GET /carts/17 401 ${record({ method: 'GET', path: '/carts/17', status: 401, rejection: 'access-token-invalid', reason: 'expired' })}`;
    const { explained } = await explain(text);
    expect(explained.record).toMatchObject({ rejection: 'access-token-invalid', reason: 'expired' });
    expect(explained.rows.map(({ row }) => row)).toEqual(['GET /carts/{id}']);
    expect(explained.notes.join()).toContain('see docs/reasons.md#expired');
  });

  it('what was cut from its path does not make it malformed', async () => {
    const { explained } = await explain(record({ method: 'GET', path: '/carts/\u2026', status: 401 }));
    expect(explained.rows).toHaveLength(1);
    expect(explained.notes[0]).toContain('"cut" stands for');
  });

  it('is found by its id in a log, and said not to be there otherwise', async () => {
    const cwd = folderWith({}, 'admin: false\n');
    const line = record({ method: 'GET', path: '/carts/9', status: 401, rejection: 'access-token-missing' });
    writeFileSync(path.join(cwd, 'shopward.log'), `${'x'.repeat(200_000)}\n{"requestId":"other"}\n${line}\n`);
    expect((await explain(id, { cwd, log: ['shopward.log'] })).explained.request.target).toBe('/carts/9');
    const unknown = await explain(id.replace('1', '2'), { cwd, log: ['shopward.log'] });
    expect([unknown.code, unknown.err[0]]).toEqual([1, expect.stringContaining('no record of this request')]);
  });
});

describe('an opaque token', () => {
  const opaque = '2YotnFZFEjr1zCsicMWpAA==';

  it.each([`Bearer ${opaque}`, `Authorization: Bearer ${opaque}`])('is inspected: %s', async (text) => {
    const { code, explained } = await explain(text);
    const { checks } = explained as unknown as { checks: { name: string; outcome: string }[] };
    expect([code, checks.find(({ outcome }) => outcome === 'failed')?.name]).toEqual([0, 'form']);
  });

  it('alone could be a path: the answer says what to do', async () => {
    expect((await explain(opaque)).explained.notes).toContain(tokenHint);
    const uuid = await explain('1b4e28ba-2fa1-4d2b-883f-0016d3cca427', {
      cwd: folderWith({}, 'admin: false\n'),
    });
    expect([uuid.code, uuid.err[0]]).toEqual([1, expect.stringContaining(tokenHint)]);
  });

  it.each(['/carts/2YotnFZFEjr1zCsicMWpAA', 'catalog-search-suggestions', 'carts/17'])(
    'is not suspected in %s',
    async (text) => expect((await explain(text)).explained.notes).not.toContain(tokenHint),
  );
});

describe('whatever is pasted', () => {
  it('is read without a throw', () => {
    const part = fc.oneof(
      fc.constantFrom(
        ...[
          'curl ',
          'fetch(',
          '"',
          "'",
          '`',
          '\\',
          '^"',
          '{"',
          '}',
          '[',
          '-H ',
          '-d ',
          '-X',
          '--json ',
          "$'",
        ],
        ...[
          'https://s/',
          '{"request":{"url":"/","headers":[',
          '"log":{"entries":[',
          ',',
          ':',
          '\n',
          '-F a=',
          '@',
        ],
      ),
      anyText(),
    );
    const start = fc.constantFrom('', 'curl ', 'fetch(', '{"request":');
    fc.assert(
      fc.property(start, fc.array(part), (first, parts) => {
        const { target, host } = readPastedRequest(first + parts.join(''));
        expect([typeof target, typeof host]).toEqual(['string', 'string']);
      }),
      { numRuns: 3000 },
    );
  });
});
