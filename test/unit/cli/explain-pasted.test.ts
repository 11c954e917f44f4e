import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import {
  type ExplainedPaste,
  explainForConsole,
  explainPasted,
} from '../../../src/cli/explain/explain-pasted.ts';
import { explanationText } from '../../../src/cli/explain/explanation-text.ts';
import { readHar } from '../../../src/cli/explain/har.ts';
import { readCurl } from '../../../src/cli/explain/pasted-command.ts';
import { readPastedRequest } from '../../../src/cli/explain/pasted-request.ts';
import { runExplain } from '../../../src/cli/explain.ts';
import { anyText } from '../../harness/any-text.ts';
import { listOf, readList } from '../access/list-text.ts';
import { keys, loadGood, makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

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

async function explain(text: string, { cwd = folderWith() } = {}) {
  const { code, out, err } = await runCommand((io) => runExplain([text], { json: true }, io), { cwd });
  return { code, err, explained: JSON.parse(out.join('\n') || '{}') as ExplainedPaste };
}

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
    [`--json '{}' https://s/a`, { method: 'POST', body: '{}', fields: [...json, 'Accept', json[1]] }],
    [`-d '{}' -H 'content-type: ${json[1]}' https://s/a`, { fields: ['content-type', json[1]] }],
    [`-d x -H 'Content-Type:' https://s/a`, { fields: [] }],
    ['-I https://s/a', { method: 'HEAD' }],
    ['-b a=1 -u u:p https://s/a', { fields: ['Cookie', 'a=1', 'Authorization', 'Basic dTpw'] }],
    ['--oauth2-bearer t https://s/a', { fields: ['Authorization', 'Bearer t'] }],
    ['-A me -e you https://s/a', { fields: ['User-Agent', 'me', 'Referer', 'you'] }],
    ['--path-as-is https://s/a/../b', { url: 'https://s/a/../b' }],
    ['-sSL -k --compressed --max-time 3 --url https://s/a -o /dev/null', { url: 'https://s/a' }],
    ["https://s/a \\\n  -X PATCH \\\r\n -H 'A: b'", { method: 'PATCH', fields: ['A', 'b'] }],
    [`https://s/a -d $'it\\'s \\u0021'`, { body: "it's !" }],
    ['https://s/a?b | jq . > out', { url: 'https://s/a?b', notes: ['read from a curl command'] }],
  ])('%s', (text, expected) => expect(of(text)).toMatchObject(expected));

  it('keeps a shell variable unexpanded, and says so', () => {
    const text = 'https://s/a -H "Authorization: Bearer $TOKEN"';
    expect(of(text)).toMatchObject({
      fields: ['Authorization', 'Bearer $TOKEN'],
      notes: expect.arrayContaining([expect.stringContaining('variables are taken as they stand')]),
    });
  });

  it.each([`-u 'me:pa$SWORD9'`, `-d '{"query":"query($ID: ID!)"}'`])(
    'sees no variable in single quotes, and prints none: %s',
    (option) => expect(of(`${option} https://s/a`)).toMatchObject({ notes: ['read from a curl command'] }),
  );

  it.each([
    ['-d @body.json', '@body.json: the content of that file'],
    ['-H @fields', '-H @fields: it is no field'],
  ])('%s: a note says what is unknown', (option, note) =>
    expect(of(`${option} https://s/a`)).toMatchObject({
      notes: expect.arrayContaining([expect.stringContaining(note)]),
    }),
  );
});

describe('a HAR file', () => {
  const json = ['content-type', 'application/json'];
  const entry = (status: number, url: string) => ({
    request: {
      method: 'POST',
      url,
      headers: [':authority', 's', ...json, 'content-length', '999'].flatMap((name, i, all) =>
        i % 2 === 0 ? [{ name, value: all[i + 1] }] : [],
      ),
      postData: { mimeType: 'application/json', text: '{}' },
    },
    response: { status },
  });
  const log = { log: { entries: [entry(200, 'https://s/a'), entry(401, 'https://s/carts/1')] } };

  it('is read at the first entry that was refused', () => {
    const read = { method: 'POST', url: 'https://s/carts/1', fields: json, body: '{}' };
    const notes = ['entry 2 of 2 of a HAR file: the first one that was refused'];
    expect(readHar(log)).toEqual({ ...read, notes });
    expect(readPastedRequest(JSON.stringify(entry(200, 'https://s/a'))).target).toBe('/a');
    const { request } = entry(200, 'https://s/a');
    expect(readPastedRequest(JSON.stringify(request))).toMatchObject({ target: '/a', body: '{}' });
  });

  it('is read if its file name is given', async () => {
    const cwd = folderWith({ 'session.har': JSON.stringify(log) });
    const { explained } = await explain('session.har', { cwd });
    expect(explained.request).toEqual({ method: 'POST', target: '/carts/1', host: 's' });
  });
});

describe('the decision depends on fields and body', () => {
  it.each([
    ['curl https://s/carts/1', 'access-token-missing', 'missing'],
    [`curl https://s/carts/1 -H 'Authorization: Bearer x'`, 'access-token-invalid', 'malformed'],
    [`curl https://s/carts/1 -u u:p`, 'access-token-invalid', 'other-scheme'],
    [`curl https://s/x -X POST -H 'X-HTTP-Method-Override: DELETE'`, 'method-override', undefined],
    [`curl https://s/x -X GET -d a`, 'unexpected-body', undefined],
    [`curl https://s/x -H 'Host: a b'`, 'bad-host', undefined],
    [`curl https://s/refresh-tokens --json '{"a":"r","a":"s"}'`, 'token-request-not-plain', 'repeated'],
    [
      `curl https://s/refresh-tokens -d x -H 'Content-Type: text/plain'`,
      'token-request-type',
      'content-type',
    ],
    [`curl https://s/x -X patch`, 'method-not-allowed', undefined],
  ])('%s', async (text, rejection, reason) => {
    const { explained } = await explain(text);
    expect(explained.refusal).toMatchObject({
      rejection,
      ...(reason && { reason }),
      see: `docs/reasons.md#${rejection === 'access-token-invalid' ? reason : rejection}`,
    });
    expect(explained.forward).toBeNull();
  });

  it('a refresh token in the body is noticed but not printed', async () => {
    const body = '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"very-secret"}}}';
    const { explained } = await explain(`curl https://s/refresh-tokens --json '${body}'`);
    expect(JSON.stringify(explained)).not.toContain('very-secret');
    expect(explained.filters.map(({ found }) => found).join()).toContain('has a refresh token');
    expect(explained.refusal).toBeNull();
  });

  it('observe mode notes what it would refuse', async () => {
    const cwd = folderWith({}, 'mode: observe\n');
    const { explained } = await explain('curl https://s/carts/1', { cwd });
    expect(explained).toMatchObject({ refusal: null, observed: { rejection: 'access-token-missing' } });
    expect(explained.forward).not.toBeNull();
  });
});

describe('a record of the log of shopward', () => {
  const id = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427';
  const record = (more: object) =>
    JSON.stringify({ level: 'info', requestId: id, decision: 'refused', route: '*', ...more });

  it.each([
    [{ method: 'GET', path: '', status: 408, rejection: 'request-timeout' }, 'refused'],
    [{ method: 'GET', path: '/carts/17', status: 413, rejection: 'payload-too-large' }, 'protected'],
    [{ method: 'GET', path: '/open', status: 400, rejection: 'bad-request', reason: 'body-cut' }, 'open'],
  ] as const)('%j is explained with its refusal and the verdict %s', async (more, verdict) => {
    const { explained } = await explain(record(more));
    const { rejection } = more;
    expect(explained).toMatchObject({ verdict, refusal: { rejection }, forward: null });
  });

  it('is shown beside the decision of the list', async () => {
    const text = `[16:03:53] INFO: GET /carts/17 401 ${record({ method: 'GET', path: '/carts/17', status: 401, rejection: 'access-token-invalid', reason: 'expired' })}`;
    const { explained } = await explain(text);
    expect(explained.record).toMatchObject({ rejection: 'access-token-invalid', reason: 'expired' });
    expect(explained.rows.map(({ row }) => row)).toEqual(['GET /carts/{id}']);
    expect(explained.notes.join()).toContain('see docs/reasons.md#expired');
  });

  it('of a refusal is not explained as "forwarded"', async () => {
    const text = record({ method: 'PATCH', path: '/carts/17', status: 428, rejection: 'if-match-missing' });
    const { out } = await runCommand((io) => runExplain([text], {}, io), { cwd: folderWith() });
    const printed = out.join('\n');
    expect(printed).toContain('then refused    428 code 005');
    expect(printed).toContain('forwarded       no');
  });

  it('with a shortened path is not malformed', async () => {
    const { explained } = await explain(record({ method: 'GET', path: '/carts/\u2026', status: 401 }));
    expect(explained.rows).toHaveLength(1);
    expect(explained.notes[1]).toContain('"cut" stands for');
  });

  it.each([id, `X-Request-Id: ${id}`])(
    'given by its id, without an admin port: the answer says where to look: %j',
    async (text) => {
      const { code, err } = await explain(text, { cwd: folderWith({}, 'admin: false\n') });
      expect([code, err[0]]).toEqual([1, expect.stringContaining(`grep ${id} FILE | shopward explain -`)]);
    },
  );
});

describe('text that is not a request', () => {
  it.each([
    ['Invoke-WebRequest -Uri "https://s/a" `\n-Method "PATCH"', 'neither a URL nor a path'],
    ['wget --method=PATCH https://s/a', 'neither a URL nor a path'],
    ['carts/1', 'neither a URL nor a path'],
    ['2YotnFZFEjr1zCsicMWpAA==', 'neither a URL nor a path'],
    ['{"foo": 1}', 'neither a URL nor a path'],
    ['{"log":{"entries":[]}}', 'neither a URL nor a path'],
    ['GET /a\nGET /b', 'on one line'],
    ['curl -sS', 'no URL'],
    ['curl https://s/a https://s/b', 'several URLs'],
    ['curl https://s/a?b=1&c=2', 'put quotes around the URL'],
    ['curl https://s/a/../b', 'write the path that is sent'],
    ['curl -F a=1 https://s/a', 'an option that is not read here'],
    ['curl https://s/a -X', 'an option that is not read here'],
    ['curl ^"https://s/a^" ^\r\n -X ^"PATCH^"', 'copy it as cURL (bash)'],
    ['curl "https://s/${"', 'put the value there'],
  ])('ends with 2 and the reason: %s', async (text, why) => {
    const { code, err, explained } = await explain(text);
    expect([code, explained]).toEqual([2, {}]);
    expect(err.join()).toContain(why);
    expect(err.join()).toContain('what it reads   a method and a URL or a path, ');
  });

  it('is unreadable in the console too', async () => {
    const { config } = await loadGood(keys, { files: { 'protected-resources.yaml': listOf(...rows) } });
    const question = { method: 'GET', text: 'a colleague said', fields: [], body: undefined };
    const unasked = () => Promise.reject(new Error('no token'));
    const compiled = compileProtectedList(readList(listOf(...rows)), config.request);
    expect(await explainForConsole(question, config, compiled, unasked)).toEqual({
      verdict: 'unreadable',
      text: expect.arrayContaining([expect.stringMatching(/^ {2}because {9}it has neither/)]),
    });
  });

  it.each(['GET /a b', '/a{b}', 'PURGE /carts'])('does not include the odd request %s', (text) =>
    expect(readPastedRequest(text).unreadable).toBeUndefined(),
  );
});

it.each(['Bearer', 'Authorization: Bearer'])('an opaque token after %s is inspected', async (before) => {
  const { code, explained } = await explain(`${before} 2YotnFZFEjr1zCsicMWpAA==`);
  expect(code).toBe(0);
  expect(explained).toMatchObject({ verdict: { rejection: 'access-token-invalid', reason: 'malformed' } });
});

describe('random text', () => {
  it('is read and explained without a throw', async () => {
    const { config: loaded } = await loadGood(keys, {
      files: { 'protected-resources.yaml': listOf(...rows) },
    });
    const compiled = compileProtectedList(readList(listOf(...rows)), loaded.request);
    const parts = `curl |"|'|\`|\\|^"|{"|}|[|-H |-d |-X|--json |$'|,|:|\n|https://s/|{"request":{"url":"/","headers":[
      |"log":{"entries":[|-F a=|@|GET |/carts|/1| HTTP/1.1|&amp;|%2e|?_method=x|#|//`;
    const part = fc.oneof(fc.constantFrom(...parts.split('|')), anyText());
    const start = fc.constantFrom('', 'curl ', '{"request":');
    fc.assert(
      fc.property(start, fc.array(part), (first, more) => {
        const { explained } = explainPasted(first + more.join(''), {}, loaded, compiled);
        expect(explanationText(explained, explained.notes).length).toBeGreaterThan(1);
      }),
      { numRuns: 500 },
    );
  });
});
