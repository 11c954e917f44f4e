import { Writable } from 'node:stream';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createAccessLog, type ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { eventually } from '../harness/eventually.ts';

const forwarded: ExchangeRecord = {
  requestId: 'id',
  method: 'GET',
  route: '*',
  path: '/x',
  decision: 'forwarded',
  status: 200,
  durationMs: 1,
  clientAddress: '127.0.0.1',
};
const refused: ExchangeRecord = {
  ...forwarded,
  decision: 'refused',
  status: 400,
  rejection: 'bad-request-target',
};

function open(maxRefusalLines: number) {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return { lines, log: createAccessLog({ log: pino(stream), maxRefusalLines, windowMs: 50 }) };
}

it('logs every forwarded request, and of a flood of one refusal the first ones and a sum', async () => {
  const { lines, log } = open(3);
  for (let i = 0; i < 10; i++) {
    log.write(forwarded);
    log.write(refused);
  }
  log.write({ ...refused, rejection: 'bad-host' });
  const of = (rejection: string | undefined) =>
    lines.filter((line) => line.event === 'request' && line.rejection === rejection).length;
  expect([of(undefined), of('bad-request-target'), of('bad-host')]).toEqual([10, 3, 1]);
  const sum = await eventually('the sum', () => lines.find(({ event }) => event === 'requests-not-logged'));
  expect(sum).toMatchObject({ rejection: 'bad-request-target', count: 7 });
  log.write(refused);
  expect(of('bad-request-target')).toBe(4);
});

it('says nothing of refusals that were all logged', async () => {
  const { lines, log } = open(1);
  log.write(refused);
  await eventually('the next window', () => {
    log.write({ ...refused, rejection: 'bad-host' });
    return lines.some(({ event }) => event === 'requests-not-logged') || undefined;
  });
  expect(lines.filter(({ rejection }) => rejection === 'bad-request-target')).toHaveLength(1);
});
