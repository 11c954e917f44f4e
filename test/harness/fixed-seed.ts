import fc from 'fast-check';

/**
 * The committed run of the property tests is the same on every machine, so that a red run is about the change at hand;
 * `FC_SEED` takes another seed, and `npm run fuzz` looks for new ones for as long as it is asked to.
 */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.FC_SEED ?? 20_261_121) });
