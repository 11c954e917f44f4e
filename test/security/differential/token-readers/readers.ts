import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../../harness/free-port.ts';
import { findProgram } from '../../../harness/programs.ts';
import { awaitPort } from '../upstreams.ts';
import { nodeReader } from './node-reader.ts';
import type { TokenReader, WireRequest } from './wire-request.ts';

/** Starts each reader; undefined if its program is missing. */
export const readers: Readonly<Record<string, (() => Promise<TokenReader>) | undefined>> = {
  Node: async () => nodeReader,
  PHP: withProgram(findProgram('php'), startPhp),
  Python: withProgram(findProgram('python3'), async (program) =>
    ofLines(spawn(program, [source('reader.py')], { stdio: ['pipe', 'pipe', 'ignore'] })),
  ),
  // The package of Rack depends on Ruby.
  Ruby: withProgram(findProgram('rackup') && findProgram('ruby'), async (program) =>
    ofLines(spawn(program, ['-W0', source('reader.rb')], { stdio: ['pipe', 'pipe', 'ignore'] })),
  ),
  Go: withProgram(findProgram('go'), startGo),
  // CGI.pm and Plack.
  Perl: withProgram(findProgram('cgi-pm') && findProgram('plack') && 'perl', async (program) =>
    ofLines(spawn(program, [source('reader.pl')], { stdio: ['pipe', 'pipe', 'ignore'] })),
  ),
  Tomcat: withProgram(findProgram('java') && findProgram('tomcat'), startTomcat),
};

function withProgram(program: string | undefined, start: (program: string) => Promise<TokenReader>) {
  return program === undefined ? undefined : () => start(program);
}

function source(name: string): string {
  return path.join(import.meta.dirname, name);
}

async function startGo(program: string): Promise<TokenReader> {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-go-'));
  const binary = path.join(folder, 'reader');
  const env = { PATH: process.env.PATH, HOME: folder, GOCACHE: path.join(tmpdir(), 'shopward-go-cache') };
  execFileSync(program, ['build', '-o', binary, source('reader.go')], { env, stdio: 'ignore' });
  return ofLines(spawn(binary, { stdio: ['pipe', 'pipe', 'ignore'] }), () =>
    rmSync(folder, { recursive: true }),
  );
}

/** A program that answers each line by one line. */
function ofLines(child: ChildProcess, afterwards: () => void = () => undefined): TokenReader {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new TypeError('no pipes');
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit');
  // If the program has ended, `read` reports the missing answer.
  stdin.on('error', () => undefined);
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async read(requests) {
      for (const one of requests) stdin.write(`${JSON.stringify(one)}\n`);
      const answers: string[][] = [];
      while (answers.length < requests.length) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`a reader ended at ${JSON.stringify(requests[answers.length])}`);
        answers.push(JSON.parse(value));
      }
      return answers;
    },
    async close() {
      stdin.end();
      await exited;
      process.off('exit', kill);
      afterwards();
    },
  };
}

/** PHP itself parses forms only in a request to its server. */
async function startPhp(program: string): Promise<TokenReader> {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-php-'));
  const port = await freePort();
  const args = ['-n', '-q', '-S', `127.0.0.1:${port}`, '-t', folder, source('reader.php')];
  return ofServer(port, spawn(program, args, { stdio: 'ignore' }), folder);
}

/** Tomcat with one page for every path. */
async function startTomcat(bootstrap: string): Promise<TokenReader> {
  const folder = mkdtempSync(path.join(tmpdir(), 'shopward-tomcat-'));
  const port = await freePort();
  const app = path.join(folder, 'webapps/ROOT');
  for (const name of ['conf', 'temp', 'logs', 'work', 'webapps/ROOT/WEB-INF'])
    mkdirSync(path.join(folder, name), { recursive: true });
  copyFileSync(source('reader.jsp'), path.join(app, 'reader.jsp'));
  writeFileSync(
    path.join(folder, 'conf/server.xml'),
    `<Server port="-1"><Service name="Catalina"><Connector port="${port}" address="127.0.0.1"/>
      <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`,
  );
  writeFileSync(
    path.join(app, 'WEB-INF/web.xml'),
    `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0"><servlet><servlet-name>reader</servlet-name>
      <servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class>
      <init-param><param-name>jspFile</param-name><param-value>/reader.jsp</param-value></init-param></servlet>
      <servlet-mapping><servlet-name>reader</servlet-name><url-pattern>/</url-pattern></servlet-mapping></web-app>`,
  );
  const home = path.dirname(path.dirname(bootstrap));
  const jars = [bootstrap, path.join(home, 'bin/tomcat-juli.jar')].join(':');
  const folders = [`-Dcatalina.home=${home}`, `-Dcatalina.base=${folder}`, `-Djava.io.tmpdir=${folder}/temp`];
  const args = ['-Xmx128m', ...folders, '-cp', jars, 'org.apache.catalina.startup.Bootstrap', 'start'];
  return ofServer(port, spawn('java', args, { stdio: 'ignore' }), folder);
}

async function ofServer(port: number, child: ChildProcess, folder: string): Promise<TokenReader> {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit');
  await awaitPort(port, child);
  return {
    async read(requests) {
      const answers: string[][] = [];
      for (const one of requests) answers.push(await askServer(port, one));
      return answers;
    },
    async close() {
      kill();
      await exited;
      process.off('exit', kill);
      rmSync(folder, { recursive: true });
    },
  };
}

async function askServer(port: number, { method, query, contentType, body }: WireRequest): Promise<string[]> {
  const octets = Buffer.from(body, 'base64');
  const headers = { 'Content-Type': contentType, 'Content-Length': octets.length };
  const target = { host: '127.0.0.1', port, method, path: `/?${query}` };
  // A new connection for each request: a server may close an idle one just as it is used again.
  const outgoing = httpRequest({ ...target, headers, agent: false });
  outgoing.end(octets);
  const [incoming] = await once(outgoing, 'response');
  const chunks: Buffer[] = await incoming.toArray();
  const text = Buffer.concat(chunks).toString();
  // A server refuses malformed requests, and answers OPTIONS itself.
  return incoming.statusCode === 200 && text !== '' ? JSON.parse(text) : [];
}
