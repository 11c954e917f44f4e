import { describe, expect, it } from 'vitest';
import { runProtectedImport } from '../../../src/cli/protected/import.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { buildSprykerDocument, sprykerYaml } from './spryker-openapi.ts';

describe('a document of the size and shape that Spryker generates', () => {
  // YAML is read a hundred times as slowly as JSON.
  it.each([
    ['json', 90, 5_000_000],
    ['yaml', 12, 1_000_000],
  ] as const)('%s: imports whole', async (form, properties, octets) => {
    const shop = buildSprykerDocument({ types: 110, properties });
    const text = form === 'json' ? JSON.stringify(shop) : sprykerYaml(shop);
    expect(text.length).toBeGreaterThan(octets);
    expect(Object.keys(shop.paths as object).length).toBeGreaterThan(300);
    const cwd = makeFolder({ 'api.yaml': text });
    const imported = await runCommand((io) => runProtectedImport('api.yaml', { out: 'list.yaml' }, io), {
      cwd,
    });
    expect(imported.err).toEqual(['api.yaml: 83 of 385 operations need a token; the list is in list.yaml']);
  });
});
