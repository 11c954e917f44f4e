import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileEncodedSlash } from '../../../src/http/path-template.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { type CanonicalTarget, canonicaliseTarget } from '../../../src/http/request-target.ts';
import { anyPath, anyText } from '../../harness/any-text.ts';

const rules = compileEncodedSlash(['/carts/{id}']);
const numRuns = 4_000;

/** Parts of attacks on paths, and of valid paths. */
const chunks = [
  ...'/ // . .. %2e %2E %252e %25 2e %2f %2F %252f %5c \\ # ? ; %3b ;x=1 %20 %09 %00 %0a %7f %'.split(' '),
  ...'%3f %23 + ~ %7e %2D carts /carts/ ORDERS %63 1 a F %C3%A9 %c0%ae %ff %C2%85 %E2%80%AE'.split(' '),
  ...`" { | ^ ' : @ %40 * é ..; /../ /%2e%2e/ %25%32%65 index.php`.split(' '),
  ' ',
];
const target = fc.oneof(
  fc.array(fc.constantFrom(...chunks), { maxLength: 12 }).map((parts) => `/${parts.join('')}`),
  fc
    .array(fc.constantFrom(...chunks), { maxLength: 6 })
    .map((parts) => `http://shop.example${parts.join('')}`),
  fc.array(fc.constantFrom(...chunks), { maxLength: 8 }).map((parts) => parts.join('')),
  anyPath(),
  anyText().map((text) => `/${text}`),
);

function acceptedOf(sent: string): CanonicalTarget | undefined {
  const result = canonicaliseTarget(sent, 'shop.example', rules);
  return isRejection(result) ? undefined : result;
}

/** Decodes like a tolerant server: invalid escapes stay. */
function decode(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    return Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8');
  });
}

const split = (path: string) => path.replace(/^\/+/, '').split('/');
const withoutParams = (path: string) => path.replace(/;[^/]*/g, '');

/** How other servers split a path. */
const readings: Record<string, (path: string) => string[]> = {
  unchanged: split,
  'decoded once': (path) => split(decode(path)),
  'decoded twice': (path) => split(decode(decode(path))),
  'params dropped': (path) => split(withoutParams(path)),
  'params dropped, then decoded': (path) => split(decode(withoutParams(path))),
  'decoded, then params dropped': (path) => split(withoutParams(decode(path))),
  'decoded, params dropped, decoded': (path) => split(decode(withoutParams(decode(path)))),
  'backslashes as slashes': (path) => split(decode(path).replaceAll('\\', '/')),
  'trimmed of slashes and backslashes, like the shop': (path) => split(path.replace(/^[/\\]+|[/\\]+$/g, '')),
  'empty segments collapsed': (path) => split(path.replace(/\/+/g, '/')),
  'cut at a decoded question mark or fragment': (path) => split(decode(path).split(/[?#]/, 1)[0] ?? ''),
  'resolved by WHATWG URL': (path) => split(new URL(`http://shop.example${path}`).pathname),
  'decoded, resolved by WHATWG URL': (path) =>
    split(new URL(`http://shop.example/${encodeURI(decode(path)).replace(/^\/+/, '')}`).pathname),
};

/** Differences that row matching ignores: escapes, `;params`, empty segments, spaces at the end. */
function fold(segments: readonly string[]): string[] {
  return foldEach(segments, (segment) => withoutParams(decode(decode(segment))));
}

/** Like `fold`, but an encoded slash in parameters does not end them: they are removed before decoding, too. */
function foldParamsFirst(segments: readonly string[]): string[] {
  return foldEach(segments, (segment) => withoutParams(decode(decode(withoutParams(segment)))));
}

function foldEach(segments: readonly string[], read: (segment: string) => string): string[] {
  return segments.map((segment) => read(segment).replace(/ +$/, '')).filter((segment) => segment !== '');
}

describe('properties of request targets', () => {
  it('other servers read the same segments', () => {
    fc.assert(
      fc.property(target, (sent) => {
        const ours = acceptedOf(sent);
        if (ours === undefined) return;
        const both = [ours.segments, ours.alternativeSegments ?? ours.segments];
        const folded = [...both.map(fold), ...both.map(foldParamsFirst)].map((one) => JSON.stringify(one));
        const others = Object.entries(readings).filter(([, read]) => {
          const theirs = read(ours.path);
          const hasDots = theirs.some((segment) => /^ *\.\.? *(;|$)/.test(decode(segment)));
          return hasDots || !folded.includes(JSON.stringify(fold(theirs)));
        });
        expect(others.map(([name]) => name)).toEqual([]);
      }),
      { numRuns, examples: [['/carts/;%2f%2D']] },
    );
  });

  it('the query is unchanged, byte for byte', () => {
    fc.assert(
      fc.property(target, (sent) => {
        const ours = acceptedOf(sent);
        if (ours !== undefined) expect(ours.query).toBe(/\?.*$/s.exec(sent)?.[0] ?? '');
      }),
      { numRuns },
    );
  });

  it('accepts more than 200 of 2,000 samples, so that the properties are checked', () => {
    const samples = fc.sample(target, { numRuns: 2000, seed: 1 });
    const kept = samples.filter((sent) => acceptedOf(sent) !== undefined).length;
    expect(kept).toBeGreaterThan(200);
  });
});
