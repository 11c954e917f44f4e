import { describe, expect, it } from 'vitest';
import { documentReaders } from './document-readers.ts';
import { findFaults } from './growth.ts';

/** As `pure.test.ts`, of whole documents: most are read beside those who are served, so that only their growth counts. */
describe.each(documentReaders)('$name', (reader) => {
  it('costs as much as it is long', async () => {
    expect(await findFaults(reader, 5)).toEqual([]);
  });
});
