/**
 * Hunts for a lost update; exits with 1 when it finds one, or anything else that must not be.
 *
 *     node test/hunt/run.ts --replicas 3 --clients 50 --seconds 60 [--redis sentinel|single] [--carts 12] [--seed N]
 *         [--broken tags|landing|around]    a setup that must lose: shows that the hunt can find something
 *         [--calm]                   nothing is broken: what share of requests is refused all the same?
 *         [--statuses]               prints every status that clients saw, too
 */
import { parseArgs } from 'node:util';
import { type HuntOptions, isClean, runHunt } from './hunt.ts';
import { formatHunt } from './report.ts';

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '3' },
    clients: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '60' },
    carts: { type: 'string', default: '12' },
    redis: { type: 'string', default: 'sentinel' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    broken: { type: 'string' },
    calm: { type: 'boolean', default: false },
    statuses: { type: 'boolean', default: false },
  },
});
const broken = (['tags', 'landing', 'around'] as const).find((one) => one === values.broken);
if (values.broken !== undefined && broken === undefined)
  throw new Error('--broken is tags, landing or around');
const options: HuntOptions = {
  replicas: Number(values.replicas),
  clients: Number(values.clients),
  seconds: Number(values.seconds),
  carts: Number(values.carts),
  redis: values.redis === 'single' ? 'single' : 'sentinel',
  seed: Number(values.seed),
  broken,
  isCalm: values.calm,
};
const report = await runHunt(options);
console.log(formatHunt(options, report));
if (values.statuses) console.log(report.sightings.counts);
process.exit(isClean(report) ? 0 : 1);
