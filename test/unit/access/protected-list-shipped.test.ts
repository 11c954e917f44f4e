import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { differencesOf } from '../../../src/access/protected-list-review.ts';
import { fileValidators, startValidators } from '../../../src/cli/file-validators.ts';
import { adviceValidators } from '../../../src/cli/list-advice.ts';
import { validateConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/lib/problem.ts';
import { contractRows } from '../../end-to-end/demo/contract-calls.ts';
import { tableRequest } from '../routes/path-table-request.ts';

const config = path.join(import.meta.dirname, '../../../config');
const files = ['protected-resources.yaml', 'protected-resources.hardened.yaml'] as const;
const [shipped, hardened] = files.map((file) => read(file));

/** One request for each path, with the method that is its key. */
function requests(paths: Readonly<Record<string, string>>): string[] {
  return Object.entries(paths).flatMap(([method, all]) => all.split(/\s+/).map((one) => `${method} ${one}`));
}

function read(file: string) {
  const text = readFileSync(path.join(config, file), 'utf8');
  const { list, problems } = parseProtectedList(text, file);
  if (!list) throw new Error(JSON.stringify(problems));
  return {
    text,
    list,
    problems,
    compiled: compileProtectedList(
      list,
      validateConfig({ auth: { keys: { jwks: 'https://shop.example/keys' } } }).config?.request as never,
    ),
  };
}

describe('config/protected-resources.yaml', () => {
  it('has exactly the 56 rows of the contract, in its order and groups', () => {
    expect(contractRows).toHaveLength(56);
    const rows = shipped?.list.rows.map(({ group, method, template }) => ({ group, method, template }));
    const wanted = contractRows.map((row) => ({ ...row, group: row.group.replace(/ \(.*\)$/, '') }));
    expect(rows).toEqual(wanted);
  });

  it('requires no scope and observes no row', () => {
    expect(shipped?.list.rows.every(({ scopes, observe }) => scopes.length === 0 && !observe)).toBe(true);
  });

  it('has one problem: a warning about a route that the contract names twice', () => {
    const texts = shipped?.problems.map(({ severity, text }) => `${severity}: ${text}`);
    expect(texts).toEqual([
      'warning: the same route as GET /customers/{customer_reference} in line 17: a request matches both',
    ]);
  });

  it('gives one warning, which names the hardened list, at the start and in check', async () => {
    const { text = '', list } = shipped ?? {};
    for (const validators of [fileValidators, startValidators(), adviceValidators]) {
      const found = (await validators.protectedResources?.(text, 'list.yaml', {})) ?? [];
      expect(found.map(formatProblem)).toEqual([
        expect.stringMatching(/^list\.yaml:1:1: warning: .*protected-resources\.hardened\.yaml/),
      ]);
      const others = await validators.protectedResources?.(
        text.replace('- GET /orders\n', '- GET /order\n'),
        'l',
        {},
      );
      expect(others?.map(formatProblem).join()).not.toContain('hardened');
    }
    expect(list?.rows).toHaveLength(56);
  });

  it('gives the line and column of each row', () => {
    const lines = shipped?.text.split('\n') ?? [];
    for (const { method, template, source } of shipped?.list.rows ?? []) {
      expect(lines[source.line - 1]?.slice(source.column - 1)).toBe(`${method} ${template}`);
    }
  });
});

describe('config/protected-resources.hardened.yaml', () => {
  it('adds 48 rows to those of the contract, and changes none', () => {
    const differences = shipped && hardened ? [...differencesOf(shipped.list, hardened.list)] : [];
    expect(differences.map(({ kind }) => kind)).toEqual(Array(48).fill('added'));
  });

  it.each(
    requests({
      GET: `/customers /customers/DE--1/addresses/2 /customers/DE--1/carts /customers/DE--1/orders
        /customers/DE--1/availability-notifications /my-availability-notifications
        /my-availability-notifications/x /customers/DE--1/availability-notifications/x
        /booked-services /booked-services/1 /ssp-assets /ssp-assets/1 /ssp-inquiries
        /ssp-inquiries/1 /carts/17/up-selling-products/x/ /addresses/17 /items/17.jsonapi
        /orders/1/order-items/2 /carts/1/items/2 /wishlists/1/wishlist-items/2
        /company-business-units /company-business-units/mine /cart-permission-groups
        /cart-permission-groups/1 /agent-quote-requests /multi-factor-auth-types`,
      POST: `/ssp-assets /ssp-inquiries /items /wishlist-items /carts/1/cart-codes
        /carts/1/configured-bundles /cart-reorder /quote-requests
        /quote-requests/1/quote-request-cancel /tax-id-validate /multi-factor-auth-trigger
        /multi-factor-auth-type-activate /multi-factor-auth-type-verify
        /multi-factor-auth-type-deactivate`,
      PATCH: `/addresses/17 /items/17 /wishlists/1/wishlist-items/2 /carts/1/configured-bundles/2
        /shopping-lists/1/shopping-list-items/2`,
      DELETE: `/shopping-list-items/17 /carts/1/configured-bundles/2
        /shopping-lists/1/shopping-list-items/2`,
    }),
  )('protects %s', (request) => {
    expect(hardened?.compiled.match(tableRequest(request))).toBeDefined();
  });
});

describe.each(files)('config/%s', (file) => {
  it.each(
    requests({
      GET: `/url-resolver /refresh-tokens /stores /catalog-search /catalog-search-suggestions
        /abstract-products/134 /abstract-products/134/ /abstract-products/134/product-reviews
        /abstract-products/carts /abstract-products/orders
        /concrete-products/134_1/concrete-product-prices /category-trees /category-nodes/5
        /cms-pages /cms-pages/8d378933-22f9-54c7-b45e-db68f2d5d9a3 /merchants/MER000005 /guest-carts
        /guest-carts/1/up-selling-products /return-reasons /carts-history /`,
      POST: `/access-tokens /refresh-tokens /customers /customer-forgotten-password
        /customer-confirmation /guest-carts/1/guest-cart-items /checkout /checkout-data
        /order-payments /availability-notifications`,
      'form POST': '/token',
      PATCH: '/customer-restore-password/1 /guest-carts/1',
      DELETE: '/guest-carts/1/guest-cart-items/2 /availability-notifications/1',
      OPTIONS: '/carts/1',
    }),
  )('leaves %s open', (request) => {
    expect(read(file).compiled.match(tableRequest(request))?.route).toBeUndefined();
  });
});
