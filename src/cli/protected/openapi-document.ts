import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import type { CommandIo } from '../command-io.ts';
import { withoutSchemas } from './yaml-sections.ts';

/** A JSON value of a document that somebody else wrote: nothing about it is known. */
export type Json = unknown;
export type JsonMap = Readonly<Record<string, Json>>;

export function isMap(value: Json): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const maxBytes = 128 * 1024 * 1024;

/**
 * Reads an OpenAPI 3 document, JSON or YAML; undefined once its fault is on standard error: then exit 2, since it was
 * named in the command and is none of our files.
 */
export async function readOpenApi(name: string, io: CommandIo): Promise<JsonMap | undefined> {
  const read = await readFile(resolve(io.cwd, name)).catch((cause: NodeJS.ErrnoException) => cause);
  const result = read instanceof Error ? { fault: `cannot be read (${read.code})` } : parseOpenApi(read);
  if (!('fault' in result)) return result.document;
  io.err(`${name}: error: ${result.fault}`);
  return undefined;
}

/** Parses a document and looks whether it is one that is understood. Never throws on content. */
export function parseOpenApi(bytes: Buffer): { readonly document: JsonMap } | { readonly fault: string } {
  if (bytes.length > maxBytes) return { fault: `it is larger than ${maxBytes} bytes` };
  const parsed = parseText(bytes.toString('utf8').replace(/^\ufeff/, ''));
  if ('fault' in parsed) return parsed;
  const { value } = parsed;
  if (!isMap(value)) return { fault: 'it is no OpenAPI document: a map is needed' };
  if (value.swagger !== undefined) return { fault: 'Swagger 2 is not understood: convert it to OpenAPI 3' };
  const version = String(value.openapi ?? '');
  if (!version.startsWith('3.')) return { fault: 'it is no OpenAPI 3 document: the key openapi is missing' };
  if (!isMap(value.paths)) return { fault: 'it has no paths' };
  return { document: value };
}

function parseText(text: string): { readonly value: Json } | { readonly fault: string } {
  if (/^\s*\{/.test(text)) {
    try {
      return { value: JSON.parse(text) as Json };
    } catch {
      // A YAML document may begin with a brace as well.
    }
  }
  const short = withoutSchemas(text);
  const parsed = parseYaml(short);
  return 'fault' in parsed && short !== text ? parseYaml(text) : parsed;
}

function parseYaml(text: string): { readonly value: Json } | { readonly fault: string } {
  try {
    return { value: parse(text, { logLevel: 'error', maxAliasCount: 10_000 }) as Json };
  } catch (cause) {
    const [first = ''] = cause instanceof Error ? cause.message.split('\n') : [];
    return { fault: `it is neither JSON nor YAML: ${first.replace(/:$/, '')}` };
  }
}

/** Follows a `$ref` within the document (RFC 6901); undefined: it leads out of the document, or nowhere. */
export function followReference(document: JsonMap, value: Json): JsonMap | undefined {
  let found: Json = value;
  for (let hops = 0; isMap(found) && typeof found.$ref === 'string'; hops += 1) {
    if (!found.$ref.startsWith('#/') || hops > 10) return undefined;
    let next: Json = document;
    for (const step of found.$ref.slice(2).split('/')) {
      const key = decodeStep(step);
      next = isMap(next) && Object.hasOwn(next, key) ? next[key] : undefined;
    }
    found = next;
  }
  return isMap(found) ? found : undefined;
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~');
  } catch {
    return step;
  }
}
