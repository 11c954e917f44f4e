import { isObject } from '../lib/json.ts';
import type { Steps } from '../lib/slices.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** Octets that are looked at in one step: some 50 microseconds. */
const stepBytes = 16_384;
/** `"type"` with an escape for each letter; a longer name is none that is looked for. */
const longestName = 26;
/** A longer type or id, of which no path could hold any, counts as empty. */
const longestLeaf = 65_536;
/** Containers in containers: what PHP writes and reads by default. */
const deepest = 512;

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end';

/**
 * `JSON.parse(text)?.data` (RFC 8259), of which only `type` and `id` of its resources matter, in small steps: of a document of
 * some megabytes `JSON.parse` makes a million objects, and stops everybody for it. A list has its first two resources
 * only, which tells one from several. Undefined: no JSON, no `data`, nested deeper than 512 levels, or with a number
 * of more than 64 KiB.
 */
export function* scanPrimaryData(octets: Buffer): Steps<unknown> {
  const found = new PrimaryData(octets);
  /** Whether each open container is a list, from the outside in. */
  const lists: boolean[] = [];
  let expected: Expected = 'value';
  let nextStep = stepBytes;
  for (let at = 0; at < octets.length; ) {
    if (at >= nextStep) {
      nextStep = at + stepBytes;
      yield;
    }
    const octet = octets[at] as number;
    if (isJsonSpace(octet)) {
      at = skipSpaces(octets, at, nextStep);
      continue;
    }
    let end = at + 1;
    if (octet === quote) {
      end = closingQuote(octets, end, at + stepBytes);
      while (end !== -1 && end < octets.length && octets[end] !== quote) {
        yield;
        end = closingQuote(octets, end, end + stepBytes);
      }
      if (end === -1 || end >= octets.length) return undefined;
      end += 1;
    }
    const isList = lists.at(-1) === true;
    if (expected === ':') {
      if (octet !== colon) return undefined;
      expected = 'value';
    } else if (octet === (isList ? closeBracket : closeBrace) && mayClose(expected) && lists.length > 0) {
      lists.pop();
      expected = ', or end';
    } else if (expected === ', or end') {
      if (octet !== comma || lists.length === 0) return undefined;
      expected = isList ? 'value' : 'name';
    } else if (expected === 'name' || expected === 'name or }') {
      if (octet !== quote) return undefined;
      found.takeName(lists.length, at, end);
      expected = ':';
    } else if (octet === openBrace || octet === openBracket) {
      found.takeValue(lists.length, octet === openBrace ? {} : []);
      if (lists.push(octet === openBracket) > deepest) return undefined;
      expected = octet === openBrace ? 'name or }' : 'value or ]';
    } else {
      if (octet !== quote) end = wordEnd(octets, at);
      if (end === -1) return undefined;
      found.takeLeaf(lists.length, at, end);
      expected = ', or end';
    }
    at = end;
  }
  return expected === ', or end' && lists.length === 0 ? found.data : undefined;
}

function mayClose(expected: Expected): boolean {
  return expected === ', or end' || expected === 'name or }' || expected === 'value or ]';
}

/** What is kept of a document while it is scanned. Depth: of containers around a value; members of the document have 1. */
class PrimaryData {
  data: unknown;
  readonly #octets: Buffer;
  #name = '';
  #isInData = false;
  /** The one whose members are looked at. */
  #resource: Record<string, unknown> | undefined;

  constructor(octets: Buffer) {
    this.#octets = octets;
  }

  takeName(depth: number, start: number, end: number): void {
    const isWanted = (depth === 1 || this.#isInResource(depth)) && end - start <= longestName;
    this.#name = isWanted ? (JSON.parse(this.#octets.toString('latin1', start, end)) as string) : '';
    if (depth === 1) this.#isInData = this.#name === 'data';
  }

  takeLeaf(depth: number, start: number, end: number): void {
    if (!this.#isWanted(depth)) return;
    const isShort = end - start <= longestLeaf;
    this.takeValue(depth, isShort ? JSON.parse(this.#octets.toString('utf8', start, end)) : '');
  }

  takeValue(depth: number, value: unknown): void {
    if (!this.#isWanted(depth)) return;
    if (depth === 1) {
      this.data = value;
      this.#resource = asResource(value);
    } else if (this.#isInResource(depth)) {
      if (this.#resource !== undefined) this.#resource[this.#name] = value;
    } else if (Array.isArray(this.data) && this.data.length < 2) {
      this.#resource = this.data.push(value) === 1 ? asResource(value) : undefined;
    }
  }

  #isWanted(depth: number): boolean {
    if (!this.#isInData) return false;
    if (this.#isInResource(depth)) return this.#name === 'type' || this.#name === 'id';
    return depth === 1 || (depth === 2 && Array.isArray(this.data) && this.data.length < 2);
  }

  #isInResource(depth: number): boolean {
    return this.#isInData && this.#resource !== undefined && depth === (Array.isArray(this.data) ? 3 : 2);
  }
}

function asResource(value: unknown): Record<string, unknown> | undefined {
  return isObject(value) ? value : undefined;
}

/** RFC 8259 section 2. */
export function isJsonSpace(octet: number | undefined): boolean {
  return octet === 0x20 || octet === 0x0a || octet === 0x0d || octet === 0x09;
}

/** Index of what is no space, or of the first octet from `until` on. */
function skipSpaces(octets: Buffer, from: number, until: number): number {
  let at = from;
  while (at < until && isJsonSpace(octets[at])) at += 1;
  return at;
}

/**
 * Goes on in a string: index of the quote that ends it, or of the first octet from `until` on that is no part of an
 * escape. -1: it is none.
 */
function closingQuote(octets: Buffer, from: number, until: number): number {
  let at = from;
  for (; at < octets.length && at < until; at += 1) {
    const octet = octets[at] as number;
    if (octet === quote) return at;
    if (octet < 0x20) return -1;
    if (octet !== backslash) continue;
    at += 1;
    if (octets[at] === 0x75) {
      if (!/^[0-9a-f]{4}$/i.test(octets.toString('latin1', at + 1, at + 5))) return -1;
      at += 4;
    } else if (!escapes.includes(octets[at] as number)) return -1;
  }
  return at;
}

const escapes = Buffer.from('"\\/bfnrt');
const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** Index after the number, `true`, `false` or `null` that begins at `start`. -1: it is none, or a longer number than anybody has. */
function wordEnd(octets: Buffer, start: number): number {
  let end = start;
  while (isWordOctet(octets[end]) && end - start <= longestLeaf) end += 1;
  return end - start <= longestLeaf && word.test(octets.toString('latin1', start, end)) ? end : -1;
}

function isWordOctet(octet: number | undefined): boolean {
  if (octet === undefined) return false;
  const isLetter = (octet | 0x20) >= 0x61 && (octet | 0x20) <= 0x7a;
  return isLetter || (octet >= 0x30 && octet <= 0x39) || octet === 0x2b || octet === 0x2d || octet === 0x2e;
}
