import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect } from 'vitest';
import type { RawResponse } from '../harness/raw-response.ts';

type Json = Record<string, unknown>;

export interface DescribedApi {
  readonly document: Json;
  /** Fails unless the answer is one that the operation, or the response of `components`, says. */
  expectDescribed(response: RawResponse, pointer: string): void;
}

/** One for all documents: it compiles the schema of OpenAPI once. */
const validator = new Validator();

/** Checks a document by the schema of OpenAPI 3.1, and answers by the document. */
export async function readOpenApi(given: unknown): Promise<DescribedApi> {
  const document = given as Json;
  const result = await validator.validate(structuredClone(document));
  expect(result.errors, JSON.stringify(result.errors)).toBeUndefined();
  expect(result.valid).toBe(true);
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'api', ...document });
  const compiled = new Map<string, ValidateFunction>();
  const at = (pointer: string) =>
    pointer
      .split('/')
      .reduce<unknown>((value, key) => (value as Json | undefined)?.[unescapeKey(key)], document);
  const resolve = (pointer: string): string => {
    const found = at(pointer) as { $ref?: string } | undefined;
    expect(found, `${pointer} is described`).toBeDefined();
    return found?.$ref === undefined ? pointer : resolve(found.$ref.slice(2));
  };
  return {
    document,
    expectDescribed(response, described) {
      const pointer = resolve(described);
      const spoken = at(pointer) as { content?: Json; headers?: Json };
      const allowed = new Set(Object.keys(spoken.headers ?? {}).map((name) => name.toLowerCase()));
      for (const name of ['www-authenticate', 'retry-after', 'allow']) {
        if (response.field(name) !== undefined) expect([...allowed], name).toContain(name);
      }
      if (response.body.length === 0) return;
      const [mediaType = ''] = (response.field('content-type') ?? '').split(';');
      expect(Object.keys(spoken.content ?? {})).toContain(mediaType);
      const schema = `${pointer}/content/${mediaType.replaceAll('/', '~1')}/schema`;
      const validate = compiled.get(schema) ?? ajv.compile({ $ref: `api#/${encode(schema)}` });
      compiled.set(schema, validate);
      const body = JSON.parse(response.body.toString());
      expect(validate(body), `${JSON.stringify(validate.errors)} of ${JSON.stringify(body)}`).toBe(true);
    },
  };
}

function unescapeKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** A pointer in a fragment: braces and the like are escaped there. */
function encode(pointer: string): string {
  return pointer.split('/').map(encodeURIComponent).join('/');
}
