import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StageName } from './corpus-stage/corpus-schema.ts';
import { play } from './corpus-stage/play.ts';
import { readCorpus } from './corpus-stage/read-corpus.ts';
import { type CorpusStage, openStage } from './corpus-stage/stage.ts';

const corpus = readCorpus();

describe('the corpus', () => {
  it('has more than 2,000 attacks, each listed once', () => {
    const all = corpus.map(({ stage, values, steps }) => JSON.stringify([stage, values, steps]));
    const twice = all.filter((attack, i) => all.indexOf(attack) !== i);
    expect(twice).toEqual([]);
    expect(corpus.length).toBeGreaterThan(2000);
  });

  it('states for every attack the answer and the requests that reach the upstream', () => {
    const vague = corpus.filter(({ steps }) =>
      steps.some(({ back, upstream }) => back === undefined || upstream === undefined),
    );
    expect(vague.map(({ topic, name }) => `${topic}: ${name}`)).toEqual([]);
  });
});

/**
 * Sends every attack over a raw socket; the upstream records every octet. With the shipped configuration shopward is a
 * process of its own. With any other it runs in this process, where an uncaught exception fails the run.
 */
describe('every attack', () => {
  const names = [...new Set(corpus.map(({ stage }) => stage))];
  const stages = new Map<StageName, CorpusStage>();
  beforeAll(async () => {
    for (const name of names) stages.set(name, await openStage(name));
  });
  afterAll(async () => {
    for (const stage of stages.values()) await stage.close();
    for (const { shopward } of stages.values()) {
      for (const secret of ['eyJ', 'c4nary']) expect(shopward.output()).not.toContain(secret);
      expect(shopward.log().filter(({ event }) => event === 'crash' || event === 'fault')).toEqual([]);
    }
  });

  const topics = Map.groupBy(corpus, ({ topic }) => topic);
  for (const [topic, attacks] of topics) {
    describe(topic, () => {
      for (const attack of attacks) {
        it(`${attack.evidence}: ${attack.name}`, async () => {
          const stage = stages.get(attack.stage);
          if (stage === undefined) throw new Error(`no stage ${attack.stage}`);
          await play(attack, stage);
        });
      }
    });
  }
});
