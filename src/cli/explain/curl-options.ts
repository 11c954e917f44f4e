import { trimOws } from '../../http/field-list.ts';

/** Applies an option of curl to the request. */
type Use = (request: CurlRequest, value: string) => void;

/** The request by curl's options, before its defaults are added. */
export interface CurlRequest {
  method: string | undefined;
  readonly urls: string[];
  /** Name and value of each -H; an empty value removes curl's own field. */
  readonly fields: [name: string, value: string][];
  /** Parts of -d, joined by `&`, and of --json, joined by nothing. */
  data: string | undefined;
  /** Names and values of -F. */
  readonly parts: [name: string, value: string][];
  type: string | undefined;
  query: string | undefined;
  isQuery: boolean;
  isHead: boolean;
  isUpload: boolean;
  keepsPath: boolean;
  version: '1.0' | '1.1';
  target: string | undefined;
  readonly notes: string[];
}

/** Sets a text to the option's value, or to `fixed`. */
function setting(name: 'method' | 'target' | 'version', fixed?: '1.0'): Use {
  return (request, value) => {
    Object.assign(request, { [name]: fixed ?? value });
  };
}

function flag(name: 'isQuery' | 'isHead' | 'keepsPath'): Use {
  return (request) => {
    request[name] = true;
  };
}

/** The options that affect the request, by their long name. */
export const curlOptions: Readonly<
  Record<string, { readonly short?: string; readonly isFlag?: true; readonly use: Use }>
> = {
  request: { short: 'X', use: setting('method') },
  url: { use: ({ urls }, value) => void urls.push(value) },
  header: { short: 'H', use: addField },
  data: { short: 'd', use: (request, value) => addData(request, value, '&', '@') },
  'data-ascii': { use: (request, value) => addData(request, value, '&', '@') },
  'data-binary': { use: (request, value) => addData(request, value, '&', '@') },
  'data-raw': { use: (request, value) => addData(request, value, '&') },
  'data-urlencode': { use: (request, value) => addData(request, encodeData(value), '&') },
  json: {
    use(request, value) {
      addData(request, value, '', '@');
      request.type = 'application/json';
    },
  },
  form: { short: 'F', use: addPart },
  'form-string': { use: addPart },
  get: { short: 'G', isFlag: true, use: flag('isQuery') },
  head: { short: 'I', isFlag: true, use: flag('isHead') },
  'upload-file': {
    short: 'T',
    use(request, value) {
      request.isUpload = true;
      request.notes.push(`-T ${value}: what that file holds is not known`);
    },
  },
  cookie: {
    short: 'b',
    use({ fields, notes }, value) {
      if (value.includes('=')) fields.push(['Cookie', value]);
      else notes.push(`-b ${value}: the cookies of that file are not known`);
    },
  },
  user: {
    short: 'u',
    use: ({ fields }, value) => void fields.push(['Authorization', `Basic ${btoaUtf8(value)}`]),
  },
  'oauth2-bearer': { use: ({ fields }, value) => void fields.push(['Authorization', `Bearer ${value}`]) },
  'user-agent': { short: 'A', use: ({ fields }, value) => void fields.push(['User-Agent', value]) },
  referer: { short: 'e', use: ({ fields }, value) => void fields.push(['Referer', value]) },
  range: { short: 'r', use: ({ fields }, value) => void fields.push(['Range', `bytes=${value}`]) },
  compressed: {
    isFlag: true,
    use: ({ fields }) => void fields.push(['Accept-Encoding', 'deflate, gzip, br, zstd']),
  },
  'path-as-is': { isFlag: true, use: flag('keepsPath') },
  'request-target': { use: setting('target') },
  'url-query': {
    use(request, value) {
      request.query = joinWith('&', request.query, encodeData(value));
    },
  },
  'http1.0': { short: '0', isFlag: true, use: setting('version', '1.0') },
};

/** Short name of an option -> its long name. */
export const longOf = new Map(
  Object.entries(curlOptions).flatMap(([name, { short }]) => (short ? [[short, name]] : [])),
);

/** Short and long names of the other options that take a value, up to curl 8.17. */
export const otherWithValue: ReadonlySet<string> = new Set([
  ...'oxmwcDKEQtyYzCPUh',
  ...`
    abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config connect-timeout connect-to
    continue-at cookie-jar create-file-mode crlfile curves delegation dns-interface dns-ipv4-addr dns-ipv6-addr
    dns-servers doh-url dump-header ech egd-file engine etag-compare etag-save expect100-timeout ftp-account
    ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip
    hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway keepalive-cnt keepalive-time key key-type krb
    libcurl limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time
    netrc-file noproxy output output-dir parallel-max parallel-max-host pass pinnedpubkey preproxy proto
    proto-default proto-redir proxy proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile
    proxy-header proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers
    proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file rate resolve
    retry retry-delay retry-max-time sasl-authzid service-name sigalgs socks4 socks4a socks5 socks5-gssapi-service
    socks5-hostname speed-limit speed-time stderr telnet-option tftp-blksize time-cond tls-max tls13-ciphers
    tlsauthtype tlspassword tlsuser trace trace-ascii trace-config unix-socket upload-flags variable vlan-priority
    write-out
  `.split(/\s+/),
]);

function addField({ fields, notes }: CurlRequest, line: string): void {
  const end = line.search(/[:;]/);
  if (line.startsWith('@')) notes.push(`-H ${line}: the fields of that file are not known`);
  else if (end < 1) notes.push(`-H ${line}: it is no field`);
  // `Name;` is a field without a value, `Name:` removes one of curl's own.
  else if (line.charAt(end) === ';') fields.push([line.slice(0, end), '']);
  else fields.push([line.slice(0, end), trimOws(line.slice(end + 1)) || removed]);
}

/** Marks a field that was removed: no field can have this value. */
export const removed = '\n';

function addData(request: CurlRequest, value: string, joint: string, fileSign?: string): void {
  if (fileSign !== undefined && value.startsWith(fileSign)) {
    request.notes.push(`-d ${value}: what that file holds is not known`);
    request.data = joinWith(joint, request.data, '');
  } else request.data = joinWith(joint, request.data, value);
}

function addPart({ parts, notes }: CurlRequest, value: string): void {
  const equals = value.indexOf('=');
  const content = value.slice(equals + 1);
  if (/^[@<]/.test(content)) notes.push(`-F ${value}: what that file holds is not known`);
  parts.push([value.slice(0, Math.max(0, equals)), /^[@<]/.test(content) ? '' : content]);
}

function joinWith(joint: string, before: string | undefined, more: string): string {
  return before === undefined ? more : before + joint + more;
}

/** Encodes `name=content` and `=content`, but not the name. */
function encodeData(value: string): string {
  const equals = value.indexOf('=');
  const name = equals > 0 ? `${value.slice(0, equals)}=` : '';
  return name + encodeURIComponent(value.slice(equals + 1).toWellFormed());
}

function btoaUtf8(text: string): string {
  return Buffer.from(text).toString('base64');
}
