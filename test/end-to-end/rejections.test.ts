import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFailureOfShop } from '../../src/http/rejection.ts';
import {
  explain,
  provokedElsewhere,
  type RefusalStage,
  rejectionNames,
  startRefusalStage,
} from './refusal-stage.ts';

/** Overrides status, code and detail of every rejection. */
const overrides = Object.fromEntries(
  rejectionNames.map((name, i) => [
    name,
    { status: 460 + i, code: `own-${name}`, detail: `Own text ${i} "<>.` },
  ]),
);

let stage: RefusalStage;
beforeAll(async () => {
  stage = await startRefusalStage({ config: { rejections: overrides } });
  // Sent now, so that its time-out passes during the other tests.
  stage.provoke('upstream-timeout').catch(() => {});
});
afterAll(() => stage?.close());
const provoked = rejectionNames.filter((name) => !provokedElsewhere.includes(name));

it('each rejection of the table is provoked here or elsewhere', () => {
  expect([...stage.provoked, ...provokedElsewhere].sort()).toEqual([...rejectionNames].sort());
});

describe('clients get the overridden status, code and detail', () => {
  it.each(provoked)('%s', async (name) => {
    const response = await stage.provoke(name);
    const own = overrides[name];
    expect(response.status, response.body.toString()).toBe(own?.status);
    expect(JSON.parse(response.body.toString())).toEqual({ errors: [own] });
    expect(response.field('content-type')).toBe('application/vnd.api+json');
    expect(response.field('content-length')).toBe(String(response.body.length));
  });
});

describe('the log line of each refusal has the id of its answer, and is explained as that refusal', () => {
  it.each(provoked)('%s', async (name) => {
    const response = await stage.provoke(name);
    const ids = response.fields('x-request-id');
    expect(ids).toEqual([expect.stringMatching(/^[\w-]{36}$/)]);
    const line = await stage.shopwardOf(name).waitForLog(({ requestId }) => requestId === ids[0]);
    const decision = isFailureOfShop(name) ? 'failed' : 'refused';
    expect(line).toMatchObject({ decision, status: response.status, rejection: name });
    const explained = await explain(JSON.stringify(line));
    expect(explained.record).toMatchObject({ requestId: ids[0], rejection: name });
    expect(explained.notes.join()).toContain('see docs/reasons.md#');
    const { verdict, refusal, forward } = explained;
    const said = [verdict, refusal?.rejection, forward];
    if (decision === 'refused') expect(said.slice(1)).toEqual([name, null]);
    if (line.path === '') expect(verdict).toBe('refused');
    // The head was parsed and matched no row.
    if (name === 'payload-too-large') expect(said).toEqual(['open', name, null]);
  });
});
