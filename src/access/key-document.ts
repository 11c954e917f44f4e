import type { VerificationKey } from './key-source.ts';
import { isObject } from './token-json.ts';
import { type KeyVerdict, validateJwk, validatePem } from './verification-key.ts';

/** What one file or response holds. Texts name the key by its place and `kid`, never by its parts. */
export interface KeyDocument {
  readonly keys: readonly VerificationKey[];
  readonly problems: readonly string[];
  /** Keys that are good for something else; no reason to refuse the document. */
  readonly ignored: readonly string[];
  /** Whether it could be read at all: false for anything that is no PEM, JWK or JWK set. */
  readonly isKeySet: boolean;
}

/** Reads JSON (a JWK, or a set of them) or PEM (any number of blocks). */
export function readKeyDocument(text: string, algorithms: readonly string[]): KeyDocument {
  return text.trimStart().startsWith('{') ? readJson(text, algorithms) : readPem(text, algorithms);
}

function readJson(text: string, algorithms: readonly string[]): KeyDocument {
  const value = parse(text);
  if (value === undefined) return failed('is not valid JSON');
  return isObject(value) && 'kty' in value
    ? gather([{ name: 'the key', verdict: validateJwk(value, algorithms) }])
    : readJwks(value, algorithms);
}

/** Reads a JWK set (RFC 7517 section 5). */
export function readJwks(value: unknown, algorithms: readonly string[]): KeyDocument {
  if (!isObject(value) || !Array.isArray(value.keys)) return failed('is not a JSON Web Key or a set of them');
  return gather(
    value.keys.map((jwk: unknown, index) => ({
      name: nameOf(jwk, index),
      verdict: validateJwk(jwk, algorithms),
    })),
  );
}

function readPem(text: string, algorithms: readonly string[]): KeyDocument {
  const blocks = [...text.matchAll(pemBlock)];
  if (blocks.length === 0) return failed('holds neither PEM nor JSON');
  return gather(
    blocks.map(([pem, label = ''], index) => ({
      name: `PEM block ${index + 1}`,
      verdict: validatePem(label, pem, algorithms),
    })),
  );
}

const pemBlock = /-----BEGIN ([A-Z0-9 ]{1,40})-----[A-Za-z0-9+/=\s]*-----END \1-----/g;

function gather(judged: readonly { name: string; verdict: KeyVerdict }[]): KeyDocument {
  const keys: VerificationKey[] = [];
  const problems: string[] = [];
  const ignored: string[] = [];
  for (const { name, verdict } of judged) {
    if ('key' in verdict) keys.push(verdict.key);
    else if ('problem' in verdict) problems.push(`${name} ${verdict.problem}`);
    else ignored.push(`${name} ${verdict.ignored}`);
  }
  return { keys, problems, ignored, isKeySet: true };
}

function nameOf(jwk: unknown, index: number): string {
  const kid =
    isObject(jwk) && typeof jwk.kid === 'string' ? ` (kid ${JSON.stringify(jwk.kid.slice(0, 64))})` : '';
  return `key ${index + 1}${kid}`;
}

function failed(problem: string): KeyDocument {
  return { keys: [], problems: [problem], ignored: [], isKeySet: false };
}

/** The parser's own message would quote the text. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
