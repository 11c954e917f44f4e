import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eventually } from '../../harness/eventually.ts';
import { freePort, isOpen } from '../../harness/free-port.ts';
import { findProgram } from '../../harness/programs.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

/** The TLS fronts of the shipped snippets; only their addresses are changed. */
export interface Front {
  readonly port: number;
  close(): Promise<void>;
}

export interface Behind {
  readonly port: number;
  readonly adminPort: number;
}

interface Runnable {
  readonly name: string;
  /** Commands that check the configuration file and that run the program in the foreground. */
  readonly check: (file: string, folder: string) => string[];
  readonly run: (file: string, folder: string, port: number) => string[];
}

interface Kind extends Runnable {
  readonly program: string | undefined;
  write(folder: string, port: number, behind: Behind): string;
  /** The configuration between shopward and two shops. */
  writeBalancer(folder: string, port: number, shops: readonly [number, number]): string;
}

const shipped = (name: string, folder = 'front') =>
  readFileSync(path.join(import.meta.dirname, '../../../deploy', folder, name), 'utf8');

/** Replaces text, and throws if the text is missing, so that an edited snippet is noticed. */
function swap(text: string, pairs: readonly (readonly [string, string])[]): string {
  return pairs.reduce((edited, [from, to]) => {
    if (!edited.includes(from)) throw new Error(`the snippet has no ${JSON.stringify(from)}`);
    return edited.replaceAll(from, to);
  }, text);
}

const nginxFolders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

const kinds: readonly Kind[] = [
  {
    name: 'nginx',
    program: findProgram('nginx'),
    check: (file, folder) => ['-t', '-p', folder, '-e', 'stderr', '-c', file],
    run: (file, folder) => ['-p', folder, '-e', 'stderr', '-c', file],
    write(folder, port, behind) {
      const snippet = swap(shipped('nginx.conf'), [
        ['listen 443 ', `listen 127.0.0.1:${port} `],
        ['server 127.0.0.1:8080;', `server 127.0.0.1:${behind.port};`],
        ['/etc/ssl/', `${folder}/`],
      ]);
      return wholeNginx(folder, snippet);
    },
    writeBalancer: (folder, port, shops) =>
      wholeNginx(
        folder,
        swap(shipped('nginx.conf', 'balancer'), [
          ['127.0.0.1:9000;', `127.0.0.1:${port};`],
          ['10.0.0.21:8000', `127.0.0.1:${shops[0]}`],
          ['10.0.0.22:8000', `127.0.0.1:${shops[1]}`],
        ]),
      ),
  },
  {
    name: 'HAProxy',
    program: findProgram('haproxy'),
    check: (file) => ['-c', '-f', file],
    run: (file) => ['-db', '-f', file],
    write: (folder, port, behind) =>
      swap(shipped('haproxy.cfg'), [
        ['bind :443 ', `bind 127.0.0.1:${port} `],
        ['10.0.0.11:8080', `127.0.0.1:${behind.port}`],
        ['10.0.0.12:8080', `127.0.0.1:${behind.port}`],
        ['check port 8081', `check port ${behind.adminPort}`],
        ['/etc/ssl/', `${folder}/`],
      ]),
    writeBalancer: (_folder, port, shops) =>
      swap(shipped('haproxy.cfg', 'balancer'), [
        ['bind 127.0.0.1:9000', `bind 127.0.0.1:${port}`],
        ['10.0.0.21:8000', `127.0.0.1:${shops[0]}`],
        ['10.0.0.22:8000', `127.0.0.1:${shops[1]}`],
      ]),
  },
];

function wholeNginx(folder: string, snippet: string): string {
  const temp = nginxFolders.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
  return `daemon off; master_process off; pid ${folder}/pid;
        events { worker_connections 64; }
        http { access_log off; ${temp}\n${snippet} }`;
}

/** Functions that start each front; undefined if its program cannot be installed. */
export const fronts: Readonly<Record<string, ((behind: Behind) => Promise<Front>) | undefined>> =
  Object.fromEntries(
    kinds.map((kind) => {
      const { name, program } = kind;
      const write = (behind: Behind) => (folder: string, port: number) => kind.write(folder, port, behind);
      return [
        name,
        program === undefined ? undefined : (behind: Behind) => start(kind, program, write(behind)),
      ];
    }),
  );

/** HAProxy that asks clients for certificates and accepts any issuer; undefined if it cannot be installed. */
export const certificateFront = kinds
  .filter(({ name, program }) => name === 'HAProxy' && program !== undefined)
  .map((kind) => (behind: Behind) => {
    const write = (folder: string, port: number) =>
      swap(kind.write(folder, port, behind), [
        [
          ' alpn ',
          ` verify optional ca-file ${folder}/api.shop.example.pem ca-ignore-err all crt-ignore-err all alpn `,
        ],
        [
          '    option forwardfor',
          '    http-request set-header Client-Cert :%[ssl_c_der,base64]:\n    option forwardfor',
        ],
      ]);
    return start(kind, kind.program ?? '', write);
  })
  .at(0);

const apacheModules = 'mpm_event authz_core headers proxy proxy_http lua ssl socache_shmcb'.split(' ');

/** Fronts that forward to the shop themselves and ask shopward for a decision on each request. */
const askingKinds: readonly (Runnable & {
  readonly program: string | undefined;
  write(folder: string, port: number, ports: Asked): string;
})[] = [
  {
    ...(kinds[0] as Kind),
    write: (folder, port, { shop, authorize }) =>
      wholeNginx(
        folder,
        swap(shipped('authorize-nginx.conf'), [
          ['listen 443 ', `listen 127.0.0.1:${port} `],
          ['server 127.0.0.1:9000;', `server 127.0.0.1:${shop};`],
          ['server 127.0.0.1:8082;', `server 127.0.0.1:${authorize};`],
          ['/etc/ssl/', `${folder}/`],
        ]),
      ),
  },
  {
    ...(kinds[1] as Kind),
    write(folder, port, { shop, authorize, script = '' }) {
      writeFileSync(
        path.join(folder, 'authorize-haproxy.lua'),
        swap(shipped('authorize-haproxy.lua'), [['local headers = {}', `${script} local headers = {}`]]),
      );
      return swap(shipped('authorize-haproxy.cfg'), [
        ['bind :443 ', `bind 127.0.0.1:${port} `],
        ['127.0.0.1:9000', `127.0.0.1:${shop}`],
        ['ask_shopward 127.0.0.1:8082', `ask_shopward 127.0.0.1:${authorize}`],
        ['/etc/ssl/', `${folder}/`],
        ['/etc/haproxy/', `${folder}/`],
      ]);
    },
  },
  {
    name: 'Apache',
    program: findProgram('lua-socket') && findProgram('apache2'),
    check: (file) => ['-t', '-f', file],
    run: (file) => ['-DFOREGROUND', '-f', file],
    write(folder, port, { shop, authorize, script = '' }) {
      const text = swap(shipped('authorize-apache.lua'), [
        ['127.0.0.1:8082', `127.0.0.1:${authorize}`],
        ['local headers = {}', `${script} local headers = {}`],
      ]);
      writeFileSync(path.join(folder, 'authorize-apache.lua'), text);
      const site = swap(shipped('authorize-apache.conf'), [
        ['*:443', `127.0.0.1:${port}`],
        ['127.0.0.1:9000', `127.0.0.1:${shop}`],
        ['/etc/ssl/', `${folder}/`],
        ['/etc/apache2/', `${folder}/`],
      ]);
      return `${apacheModules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
        Listen 127.0.0.1:${port}
        PidFile ${folder}/pid
        DefaultRuntimeDir ${folder}
        ErrorLog ${folder}/error.log
        ServerName localhost
        ${site}`;
    },
  },
  {
    name: 'Caddy',
    program: findProgram('caddy'),
    check: (file) => ['validate', '--adapter', 'caddyfile', '--config', file],
    run: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    // `server_name` becomes a catch-all, so that no name has to resolve.
    write: (folder, port, { shop, authorize }) =>
      `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n${swap(shipped('Caddyfile'), [
        ['https://api.shop.example:443 {', `https://:${port} {\n\tbind 127.0.0.1`],
        ['127.0.0.1:9000', `127.0.0.1:${shop}`],
        ['forward_auth 127.0.0.1:8082', `forward_auth 127.0.0.1:${authorize}`],
        ['/etc/ssl/', `${folder}/`],
      ])}`,
  },
];

/** What `isPlain` changes in the configuration of each front. */
const withoutTls: Readonly<Record<string, (folder: string, port: number) => [string, string][]>> = {
  nginx: () => [[' ssl http2;', ';']],
  HAProxy: (folder) => [[` ssl crt ${folder}/api.shop.example.pem alpn h2,http/1.1`, '']],
  Apache: () => [['SSLEngine on', 'SSLEngine off']],
  Caddy: (folder, port) => [
    [`https://:${port}`, `http://:${port}`],
    [`tls ${folder}/api.shop.example.pem ${folder}/api.shop.example.key`, ''],
  ],
};

export interface Asked {
  readonly shop: number;
  readonly authorize: number;
  /** Without TLS, which takes half of the CPU of a test with thousands of connections. */
  readonly isPlain?: boolean | undefined;
  /** Lua code that runs before the question to shopward, if the front asks by a Lua script. */
  readonly script?: string;
}

export const asking: Readonly<Record<string, ((ports: Asked) => Promise<Front>) | undefined>> =
  Object.fromEntries(
    askingKinds.map((kind) => [
      kind.name,
      kind.program === undefined
        ? undefined
        : (ports: Asked) =>
            start(kind, kind.program as string, (folder, port) =>
              swap(
                kind.write(folder, port, ports),
                ports.isPlain ? (withoutTls[kind.name]?.(folder, port) ?? []) : [],
              ),
            ),
    ]),
  );

/** Caches that store every answer that they may; undefined if the program cannot be installed. */
export const caches: Readonly<Record<string, ((behind: Behind) => Promise<Front>) | undefined>> = {
  nginx: cachingNginx(),
  'Varnish as it is installed': cachingVarnish(''),
  // Also looks up requests with a token, and stores every status, even without `Cache-Control`.
  'Varnish that stores all it may': cachingVarnish(
    `sub vcl_recv { return (hash); }
     sub vcl_backend_response { if (beresp.ttl <= 0s) { set beresp.ttl = 60s; } }`,
  ),
};

function cachingNginx(): ((behind: Behind) => Promise<Front>) | undefined {
  const [kind] = kinds;
  if (kind?.program === undefined) return undefined;
  const { program } = kind;
  const write = (behind: Behind) => (folder: string, port: number) =>
    wholeNginx(
      folder,
      `proxy_cache_path ${folder}/cache keys_zone=all:1m;
       server {
         listen 127.0.0.1:${port};
         proxy_cache all;
         proxy_cache_key $request_uri;
         proxy_cache_valid any 1m;
         add_header X-Cache $upstream_cache_status always;
         location / { proxy_pass http://127.0.0.1:${behind.port}; proxy_set_header Host $host; }
       }`,
    );
  return (behind) => start(kind, program, write(behind));
}

/** `rules`: VCL that runs before the built-in rules. */
function cachingVarnish(rules: string): ((behind: Behind) => Promise<Front>) | undefined {
  const program = findProgram('varnish');
  if (program === undefined) return undefined;
  const kind: Runnable = {
    name: 'Varnish',
    check: () => ['-V'],
    run: (file, folder, port) => [
      '-F',
      '-j',
      'none',
      '-n',
      folder,
      '-s',
      'malloc,16m',
      '-a',
      `127.0.0.1:${port}`,
      '-f',
      file,
    ],
  };
  const write = (behind: Behind) => () =>
    `vcl 4.1;
    backend shopward { .host = "127.0.0.1"; .port = "${behind.port}"; }
    ${rules}
    sub vcl_deliver {
      set resp.http.X-Cache = "MISS";
      if (obj.hits > 0) { set resp.http.X-Cache = "HIT"; }
    }
`;
  return (behind) => start(kind, program, write(behind));
}

type StartBalancer = (shops: readonly [number, number]) => Promise<Front>;

/** The same programs between shopward and two machines of a shop. */
export const balancers: Readonly<Record<string, StartBalancer | undefined>> = Object.fromEntries(
  kinds.map((kind) => {
    const { name, program } = kind;
    const write = (shops: readonly [number, number]) => (folder: string, port: number) =>
      kind.writeBalancer(folder, port, shops);
    const begin: StartBalancer | undefined =
      program === undefined ? undefined : (shops) => start(kind, program, write(shops));
    return [name, begin];
  }),
);

async function start(
  kind: Runnable,
  program: string,
  write: (folder: string, port: number) => string,
): Promise<Front> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'shopward-front-'));
  const port = await freePort();
  writeFileSync(path.join(folder, 'api.shop.example.pem'), testCertificate + testKey);
  writeFileSync(path.join(folder, 'api.shop.example.key'), testKey);
  const file = path.join(folder, 'front.conf');
  writeFileSync(file, write(folder, port));
  execFileSync(program, kind.check(file, folder), { stdio: 'pipe' });
  // A process group, because Apache's children outlive a killed parent.
  const child = spawn(program, kind.run(file, folder, port), { stdio: 'ignore', detached: true });
  const kill = () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', kill);
  const exited = once(child, 'exit');
  await eventually('the front', () => {
    if (child.exitCode !== null) throw new Error(`${kind.name} ended with ${child.exitCode}`);
    return isOpen(port);
  });
  return {
    port,
    async close() {
      kill();
      await exited;
      process.off('exit', kill);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
