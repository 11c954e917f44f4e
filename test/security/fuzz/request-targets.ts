import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { canonicaliseSample, sampleHead } from '../../unit/http/sample-request.ts';
import { isProtectedToShop } from '../differential/shop-rule.ts';
import { fieldLines, method, target } from './arbitraries.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

const file = path.join(import.meta.dirname, '../../../config/protected-resources.yaml');
const { list } = parseProtectedList(readFileSync(file, 'utf8'), file);
assert(list !== undefined);
const protectedList = compileProtectedList(list, { ignoredPrefixes: ['/index.php'] });

const hopByHop =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|http2-settings|proxy-.*)$/;

/** The decision as a pure function of the parsed request. */
export const requestTargets: readonly FuzzTarget[] = [
  fuzzTarget(
    'canonical-path',
    target,
    (url) => {
      const once = canonicaliseSample(sampleHead({ url }));
      if (isRejection(once)) return;
      assert.match(once.path + once.query, /^\/[\x21-\x22\x24-\x7e]*$/);
      const twice = canonicaliseSample(sampleHead({ url: once.path + once.query }));
      assert(!isRejection(twice), 'the forwarded target would be refused');
      assert.equal(twice.path + twice.query, once.path + once.query);
    },
    { runs: 1000 },
  ),
  fuzzTarget(
    'protected-decision',
    fc.record({ method, url: target, type: fc.constantFrom('application/json', 'multipart/form-data', '') }),
    ({ method, url, type }) => {
      const fields = type === '' ? [] : ['Content-Type', type];
      const request = canonicaliseSample(sampleHead({ method, url, fields }));
      if (isRejection(request)) return;
      const { path: seen } = request;
      const overridden = request.isFormPost ? ['GET', 'PATCH', 'DELETE'] : [];
      for (const verb of [request.method, ...overridden]) {
        const isProtected = isProtectedToShop({ method: verb, paths: [seen], line: '' });
        if (isProtected) assert(protectedList.match(request), `${verb} ${seen} needs no token`);
      }
    },
    { runs: 1000 },
  ),
  fuzzTarget(
    'forwarded-fields',
    fc.record({ method, lines: fieldLines }),
    ({ method, lines }) => {
      const fields = lines.flatMap((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      });
      const request = canonicaliseSample(sampleHead({ method, fields }));
      if (isRejection(request)) return;
      const names = request.fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
      for (const name of names) {
        assert.match(name, /^[a-z0-9-]+$/);
        assert.doesNotMatch(name, hopByHop);
      }
      for (const single of ['host', 'authorization', 'content-type', 'x-forwarded-for', 'x-request-id']) {
        assert(names.filter((name) => name === single).length <= 1, `two ${single}`);
      }
      assert.equal(request.fields[names.indexOf('host') * 2 + 1], 'upstream.internal:9000');
    },
    { runs: 800 },
  ),
];
