import { isCompactToken } from '../../access/bearer-credentials.ts';
import { type JsonObject, parseJsonObject } from '../../lib/json.ts';
import { readHar } from './har.ts';
import { type PastedParts, readCurl } from './pasted-command.ts';

/** The request in a pasted text. */
interface PastedRequest {
  /** Undefined: the text has none. */
  readonly method?: string | undefined;
  /** The request target as it would be sent. */
  readonly target: string;
  readonly host: string;
  /** Name, value, name, value … */
  readonly fields?: readonly string[];
  readonly body?: string | undefined;
  /** Fields and body are complete: the text is the request itself, not a line about it. */
  readonly isWhole?: boolean;
  /** Its outcome, by a record of shopward's log. */
  readonly record?: PastedRecord;
  /** Why the text is not a request; nothing else was read then. */
  readonly unreadable?: string;
  /** How the text was read, where that is not obvious. */
  readonly notes: readonly string[];
}

/** The outcome of a request, by shopward's log or the console. */
export interface PastedRecord {
  readonly requestId: string;
  readonly decision: string;
  readonly status: number;
  readonly rejection: string | undefined;
  readonly reason: string | undefined;
  /** The refusal that observe mode has not enforced. */
  readonly observed: string | undefined;
}

/**
 * Reads a text that is an access token: a JSON Web Token, or a token of any form (RFC 6750 section 2.1) with `Bearer` in front.
 * Undefined: it is something else.
 */
export function readPastedToken(pasted: string): string | undefined {
  const text = pasted.trim();
  const start = /^(?:authorization: *)?(?:(?:bearer|dpop) +)?/i.exec(text)?.[0] ?? '';
  const token = text.slice(start.length);
  if (/bearer/i.test(start) && opaqueToken.test(token)) return token;
  return token.startsWith('ey') && isCompactToken(token) ? token : undefined;
}

const opaqueToken = /^[\w.~+-][\w.~+/-]*=*$/;

/**
 * Reads a request as people copy it: `GET /x`, a URL, a line of an access log, a record of shopward's log, a curl command, a HAR
 * file or one entry of it. A path with `..` or a backslash stays as it is. Linear in the length of the text; nothing of it is run.
 */
export function readPastedRequest(pasted: string): PastedRequest {
  const text = pasted.trim();
  const parts = readCurl(text);
  if (typeof parts === 'string') return unreadable(parts);
  if (parts !== undefined) return ofParts(parts);
  const document = recordIn(text);
  const har = document && readHar(document);
  if (har !== undefined) return ofParts(har);
  return (document && ofRecord(document)) ?? readLine(text);
}

function unreadable(why: string): PastedRequest {
  return { target: '/', host: '', notes: [], unreadable: why };
}

function ofParts({ url, ...parts }: PastedParts): PastedRequest {
  const target = readTarget(url);
  return target === undefined ? unreadable('its URL is incomplete') : { ...parts, ...target, isWhole: true };
}

const accessLogLine = /"([A-Za-z]+) ([^\s"]+) HTTP\/\d(?:\.\d)?"/;

function readLine(text: string): PastedRequest {
  const logged = accessLogLine.exec(text);
  const line = logged ? `${logged[1]} ${logged[2]}` : text.replace(/ HTTP\/\d(?:\.\d)?$/, '');
  const [start = '', method] = /^([A-Za-z]+) +/.exec(line) ?? [];
  const target = line.includes('\n') ? undefined : readTarget(line.slice(start.length));
  if (target === undefined)
    return unreadable('it has neither a URL nor a path that begins with "/", on one line');
  return { method: method?.toUpperCase(), ...target, notes: [] };
}

const wholeUrl = /^https?:\/\/([^/?#]*)([^#]*)/is;

/** Target and host of a path, or of a URL without its user and its fragment. Undefined: it is neither. */
function readTarget(text: string): { target: string; host: string } | undefined {
  if (text.startsWith('/') || text === '*') return { target: text, host: 'localhost' };
  const [, authority, rest = ''] = wholeUrl.exec(text) ?? [];
  if (authority === undefined) return undefined;
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return { target: rest.startsWith('/') ? rest : `/${rest}`, host: host || 'localhost' };
}

/** Marks in shopward's log where something was cut out of a path. */
const cut = /\u2026/g;

/** Undefined: it is not a record of shopward's log. */
function ofRecord(record: JsonObject): PastedRequest | undefined {
  const { method, path } = record;
  if (typeof method !== 'string' || typeof path !== 'string') return undefined;
  const own = ownRecord(record);
  return {
    method: method === 'other' ? undefined : method,
    target: path.replace(cut, 'cut'),
    host: 'localhost',
    ...(own && { record: own }),
    notes: [
      'read from a record of a log, which has no query, no fields and no body',
      ...(path.includes('\u2026') ? ['"cut" stands for what the log leaves out of paths'] : []),
    ],
  };
}

function ownRecord(record: JsonObject): PastedRecord | undefined {
  const { requestId, decision, status } = record;
  const isOwn = typeof requestId === 'string' && typeof decision === 'string' && typeof status === 'number';
  if (!isOwn) return undefined;
  const text = (name: string) => (typeof record[name] === 'string' ? record[name] : undefined);
  return {
    ...{ requestId, decision, status },
    ...{ rejection: text('rejection'), reason: text('reason'), observed: text('observed') },
  };
}

/** The JSON object of a line, which may have the name of a container in front. */
function recordIn(text: string): JsonObject | undefined {
  const start = text.startsWith('{') ? 0 : text.search(/\s\{"/);
  return start === -1 ? undefined : parseJsonObject(text.slice(start));
}
