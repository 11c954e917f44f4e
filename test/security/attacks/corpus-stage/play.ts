import { setImmediate as soon } from 'node:timers/promises';
import { expect } from 'vitest';
import { expectRejection, request } from '../../../harness/attack-stage.ts';
import {
  exchangeRaw,
  openRawConnection,
  type RawConnection,
  type RawResponse,
} from '../../../harness/raw-client.ts';
import type { Step } from './corpus-schema.ts';
import { forgeToken } from './forge-token.ts';
import { expand, namesIn, type Values } from './notation.ts';
import type { CorpusCase } from './read-corpus.ts';
import type { CorpusStage } from './stage.ts';

export const marker = 'GET /is-still-alive';
let carts = 0;

/** Sends the requests of a case; compares the answers, and what the upstream received, with the expected ones. */
export async function play(attack: CorpusCase, stage: CorpusStage): Promise<void> {
  const values = await valuesOf(attack, stage);
  for (const step of attack.steps) await playStep(step, values, stage);
  expect(stage.process?.exitCode ?? null, stage.shopward.output()).toBe(null);
}

async function playStep(step: Step, values: Values, stage: CorpusStage): Promise<void> {
  const { length } = stage.heads;
  const never = listOf(step.never);
  const bytesSince = never.length > 0 ? stage.bytesSince() : () => '';
  const octets = octetsOf(step, values);
  const connection = await openRawConnection(stage.shopward.port);
  try {
    await send(connection, octets, step.pace);
    const last = await expectAnswers(connection, step, octets);
    if (last !== undefined) expectFields(last.fields, step.answer, values);
    if (last !== undefined) expectJson(last, step.json, values);
    await expectConnection(connection, step.connection ?? 'any', last);
  } finally {
    connection.close();
  }
  // Once this request on another connection is answered, the shop has received all that it gets of the attack.
  expect((await stage.bystander.exchange(request(marker))).status).toBe(200);
  const arrived = stage.heads.slice(length).filter((head) => !head.startsWith(marker));
  expectUpstream(arrived, step, values, octets);
  for (const text of never) expect(bytesSince()).not.toContain(expand(text, values));
}

/** The values of a case. The tag costs a request, so it is read only if the case uses it. */
async function valuesOf({ values, steps }: CorpusCase, { shopward }: CorpusStage): Promise<Values> {
  const asked = new Set(steps.flatMap((step) => notationsOf(step).flatMap((text) => namesIn(text, values))));
  const recipe = steps[0]?.token;
  const token = asked.has('token') ? forgeToken(shopward.signer, recipe, values) : undefined;
  carts += 1;
  const cart = `cart-${carts}`;
  if (!['tag', 'opaque'].some((name) => asked.has(name))) return { ...values, cart, token };
  const fields = [`Authorization: Bearer ${shopward.issueToken()}`];
  const tag = (await exchangeRaw(shopward.port, request(`GET /carts/${cart}`, fields))).field('etag') ?? '';
  return { ...values, cart, token, tag: () => tag, opaque: () => tag.slice(1, -1) };
}

function notationsOf({
  bytes = '',
  request: line = '',
  fields = [],
  body = '',
  answer = {},
}: Step): string[] {
  return [bytes, line, body, ...fields, ...Object.values(answer).flat()];
}

export function octetsOf({ bytes, request: line, fields = [], body = '' }: Step, values: Values): string {
  if (bytes !== undefined) return expand(bytes.replaceAll('\n', '\\r\\n'), values);
  if (line === undefined) throw new Error('a step of the corpus sends nothing');
  const content = expand(body, values);
  const all = { ...values, length: String(content.length) };
  return request(
    expand(line, all),
    fields.map((field) => expand(field, all)),
    content,
  );
}

async function send(connection: RawConnection, octets: string, pace: Step['pace']): Promise<void> {
  if (pace === 'octets') {
    for (const octet of octets) {
      await connection.write(octet).catch(() => {});
      await soon();
    }
  } else await connection.write(octets);
  if (pace === 'half-close') connection.end();
}

async function expectAnswers(
  connection: RawConnection,
  { back }: Step,
  octets: string,
): Promise<RawResponse | undefined> {
  const method = /^[A-Z]*/.exec(octets)?.[0] || 'GET';
  let last: RawResponse | undefined;
  for (const wanted of listOf(back)) {
    if (wanted === 'closed') {
      expect((await connection.readAll()).toString('latin1')).toBe('');
      continue;
    }
    const [statuses = '', code] = wanted.split(' ');
    last = await connection.readResponse(method);
    if (code === undefined) expect(statuses.split('|')).toContain(String(last.status));
    else expectRejection(last, Number(statuses), code, method);
  }
  return last;
}

async function expectConnection(
  connection: RawConnection,
  wanted: string,
  last: RawResponse | undefined,
): Promise<void> {
  if (wanted === 'closed') {
    // The proxy waits a while for clients that still send; the half-close ends this wait.
    if (last?.field('connection') === 'close') connection.end();
    expect((await connection.readAll()).toString('latin1')).toBe('');
  }
  if (wanted !== 'open') return;
  await connection.write(request(marker));
  expect((await connection.readResponse()).status).toBe(200);
}

function expectUpstream(arrived: readonly string[], step: Step, values: Values, octets: string): void {
  const wanted = listOf(step.upstream).filter((line) => line !== 'nothing');
  const lines = wanted.map((line) =>
    line.startsWith('same') ? line.replace('same', firstLine(octets)) : expand(line, values),
  );
  const seen = arrived.map((head, i) => `${firstLine(head)}${framingOf(head, lines[i])}`);
  expect(seen).toEqual(lines);
  const head = arrived.at(-1);
  if (head === undefined) return;
  expectFields((name) => fieldsOf(head, name), step.arrives, values);
  const names = [...head.matchAll(/\r\n([^:\r\n]+):/g)].map(([, name = '']) => name.toLowerCase());
  if (step.only !== undefined) expect(names.filter((name) => !step.only?.includes(name))).toEqual([]);
}

const firstLine = (octets: string) => octets.slice(0, octets.indexOf('\r\n'));

/** The proxy may forward a chunked body with its length: `| body 5` accepts both. */
function framingOf(head: string, wanted = ''): string {
  const either = / \| body \d+$/.exec(wanted)?.[0];
  const codings = fieldsOf(head, 'transfer-encoding');
  if (codings.length > 0) return codings.join() === 'chunked' && either ? either : ` | ${codings}`;
  const [length = '0'] = fieldsOf(head, 'content-length');
  if (length === '0') return '';
  return either === ` | body ${length}` ? either : ` | length ${length}`;
}

function fieldsOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').slice(1, -2);
  const own = lines.filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return own.map((line) => line.slice(name.length + 1).trim());
}

function expectFields(read: (name: string) => string[], wanted: Step['answer'], values: Values): void {
  for (const [name, value] of Object.entries(wanted ?? {})) {
    const expression = typeof value === 'string' ? expressionOf(value, values) : undefined;
    if (value === 'absent') expect(read(name), name).toEqual([]);
    else if (expression !== undefined) expect(read(name).join('\n'), name).toMatch(expression);
    else expect(read(name), name).toEqual(listOf(value).map((one) => expand(one, values)));
  }
}

function expressionOf(value: string, values: Values): RegExp | undefined {
  const [, name = ''] = /^\$\{(\w+)\}$/.exec(value) ?? [];
  const named = values[name];
  const [, source] = /^\/(.*)\/$/.exec(typeof named === 'string' ? named : value) ?? [];
  return source === undefined ? undefined : new RegExp(source);
}

function expectJson(response: RawResponse, wanted: Step['json'], values: Values): void {
  for (const [pointer, value] of Object.entries(wanted ?? {})) {
    let found: unknown = JSON.parse(response.body.toString('utf8'));
    for (const name of pointer.split('/').slice(1)) {
      found = (found as Readonly<Record<string, unknown>> | undefined)?.[name];
    }
    expect(found, pointer).toEqual(typeof value === 'string' ? expand(value, values) : value);
  }
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  return value === undefined ? [] : typeof value === 'string' ? [value] : value;
}
