import { isObject, parseJsonObject } from '../../lib/json.ts';
/** A request that stands in something larger, as `METHOD target` or a request line of a log. */
export interface FoundLine {
  readonly line: string;
  /** Where it was found, for people. */
  readonly note: string;
}

/** Reads a record of a JSON log (shopward's own among them, pretty or not) or a curl command; undefined: it is neither. */
export function findRequestLine(text: string): FoundLine | undefined {
  return ofRecord(text) ?? ofCurl(text);
}

function ofRecord(text: string): FoundLine | undefined {
  const fields = parseJsonObject(recordIn(text));
  if (fields === undefined) return undefined;
  const { request } = fields;
  const note = 'read from a record of a log';
  if (typeof request === 'string') return { line: request, note };
  const source = isObject(request) ? request : fields;
  const method = source.method ?? source.request_method;
  const target = source.path ?? source.uri ?? source.url ?? source.request_uri;
  if (typeof target !== 'string') return undefined;
  return { line: typeof method === 'string' ? `${method} ${target}` : target, note };
}

/** In front of a pretty record there are a time and a level, never a slash; behind one perhaps the comma of a list. */
function recordIn(text: string): string {
  const start = text.search(/[/{]/);
  const json = start === -1 ? '' : text.slice(start).trimEnd();
  return json.endsWith(',') ? json.slice(0, -1) : json;
}

function ofCurl(text: string): FoundLine | undefined {
  if (!/^\s*(\$ )?curl\s/.test(text)) return undefined;
  const url = /(?:^|[\s"'])(https?:\/\/[^\s"']+)/i.exec(text)?.[1];
  if (url === undefined) return undefined;
  // Short options may be run together: -sd '{}'
  const given = /\s(?:-[A-Za-z]*X|--request)[\s=]*["']?([A-Za-z]+)/.exec(text)?.[1];
  const sendsBody = /\s(?:-[A-Za-z]*d|--data[^\s='"]*|--json)[\s='"]/.test(text);
  const implied = /\s(?:-[A-Za-z]*I|--head)\s/.test(text) ? 'HEAD' : sendsBody ? 'POST' : 'GET';
  return {
    line: `${given ?? implied} ${url}`,
    note: 'read from a curl command, without its fields: -H gives them',
  };
}
