import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { explainRequest } from '../../src/cli/explain/explain-request.ts';
import { explanationText } from '../../src/cli/explain/explanation-text.ts';
import { readPastedRequest } from '../../src/cli/explain/pasted-request.ts';
import { keys, loadGood } from '../config/config-folder.ts';
import { anyText } from '../harness/any-text.ts';
import { listOf } from './openapi-sample.ts';

const list = listOf('GET /carts', 'PATCH /carts/{cart_id}', 'ANY /reports/**');

describe('explain never throws', () => {
  it('whatever was pasted', async () => {
    const { config, files } = await loadGood(keys, { files: { 'protected-resources.yaml': list } });
    const { list: rows } = parseProtectedList(list, 'list');
    if (rows === undefined || files.length === 0) throw new Error('the list is broken');
    const compiled = compileProtectedList(rows, config.request);
    const part = fc.oneof(
      fc.constantFrom(
        'GET ',
        '"',
        '/carts',
        '/1',
        ' HTTP/1.1',
        '&amp;',
        '\\',
        'https://',
        '%2e',
        '?_method=x',
        '#',
        '//',
      ),
      anyText(),
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const { method = 'GET', target, host, notes } = readPastedRequest(parts.join(''));
        const explanation = explainRequest({ method, target, host }, config, compiled);
        expect(explanationText(explanation, notes).length).toBeGreaterThan(1);
      }),
      { numRuns: 3000 },
    );
  });
});
