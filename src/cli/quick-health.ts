import { readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { defaultAdmin, defaultConfigFiles, maxConfigBytes } from '../config/defaults.ts';

interface AdminAddress {
  readonly host: string;
  readonly port: number;
}

const patienceMs = 5_000;

/**
 * The quick path of `shopward health`, which containers run every few seconds: finds the admin port in a plainly written
 * configuration without loading the YAML parser or the schema. False proves nothing: `shopward health` then reads the
 * configuration as `serve` does, and says why.
 */
export async function isAlive(choices: readonly string[]): Promise<boolean> {
  const file = fileNamed(choices);
  const address = file === undefined ? undefined : readAdminAddress(file);
  return address !== undefined && (await saysItLives(address));
}

/** Undefined: there are other options than `--config`, or no file. */
function fileNamed(choices: readonly string[]): string | undefined {
  const [option, name, ...more] = choices;
  if (option === undefined) return defaultConfigFiles.find(isShortFile);
  const isOfFile = option === '--config' || option === '-c';
  return isOfFile && name !== undefined && more.length === 0 && isShortFile(name) ? name : undefined;
}

function isShortFile(name: string): boolean {
  const found = statSync(path.resolve(name), { throwIfNoEntry: false });
  return found?.isFile() === true && found.size <= maxConfigBytes;
}

function readAdminAddress(file: string): AdminAddress | undefined {
  try {
    return plainAdminAddress(readFileSync(path.resolve(file), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Host and port of the admin section, if it is written plainly: with a line for each, or in braces on one line, with plain
 * values; or the defaults if there is no section. Undefined: it needs a parser. Exported for its tests.
 */
export function plainAdminAddress(text: string): AdminAddress | undefined {
  const lines = text.split('\n').filter((line) => !/^\s*(?:#|$)/.test(line));
  const start = lines.findIndex((line) => line.startsWith('admin:'));
  if (start === -1) return lines.some((line) => line.includes('admin')) ? undefined : defaultAdmin;
  const rest = withoutComment(lines[start]?.slice('admin:'.length) ?? '');
  if (rest.startsWith('{') && rest.endsWith('}')) return addressOf(rest.slice(1, -1).split(','));
  if (rest !== '') return undefined;
  const end = lines.findIndex((line, i) => i > start && !line.startsWith(' '));
  const section = lines.slice(start + 1, end === -1 ? undefined : end);
  // Deeper lines belong to another setting.
  const depth = section[0]?.search(/\S/) ?? 0;
  return addressOf(section.filter((line) => line.search(/\S/) === depth));
}

function withoutComment(text: string): string {
  const at = text.indexOf(' #');
  return (at === -1 ? text : text.slice(0, at)).trim();
}

function addressOf(settings: readonly string[]): AdminAddress | undefined {
  let host: string = defaultAdmin.host;
  let port: number = defaultAdmin.port;
  for (const setting of settings) {
    const at = setting.indexOf(':');
    const value = withoutComment(setting.slice(at + 1));
    switch (setting.slice(0, at).trim()) {
      case 'host':
        if (!/^[a-z\d.:]+$/i.test(value)) return undefined;
        host = value;
        break;
      case 'port':
        if (!/^[1-9]\d{0,4}$/.test(value)) return undefined;
        port = Number(value);
        break;
      default:
        // A quoted key, an anchor or a merge needs the parser.
        if (!/^[a-z]+$/i.test(setting.slice(0, at).trim())) return undefined;
    }
  }
  return { host, port };
}

/** The address of this machine at which a listener on `host` is reached. */
export function reachableHost(host: string): string {
  return host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
}

/** Sends a request over a bare socket: to load node:http would cost as much as everything else here. */
function saysItLives({ host, port }: AdminAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachableHost(host), port, timeout: patienceMs });
    let answer = '';
    const end = () => {
      socket.destroy();
      resolve(/^HTTP\/1\.1 200 /.test(answer));
    };
    socket.on('connect', () => {
      socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text;
      if (answer.length >= 'HTTP/1.1 200 '.length) end();
    });
    socket.on('end', end).on('error', end).on('timeout', end);
  });
}
