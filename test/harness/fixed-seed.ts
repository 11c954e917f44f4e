import fc from 'fast-check';

/**
 * The property tests use the same seed on every machine, so that a failure comes from the change under test. `FC_SEED`
 * sets another seed; `npm run fuzz` tries new ones until its time is over.
 */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.FC_SEED ?? 20_261_121) });
