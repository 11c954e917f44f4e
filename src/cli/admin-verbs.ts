import http from 'node:http';
import { text } from 'node:stream/consumers';
import { defaultAdmin } from '../config/defaults.ts';
import { loadConfig } from '../config/load.ts';
import { parseJsonObject } from '../lib/json.ts';
import { badConfiguration, badUsage, type CommandIo, type CommonChoice, processIo } from './command-io.ts';
import { loadSettings } from './load-settings.ts';

/** Asks `/livez` of the proxy on this machine: exit code 0 if it is 200, else 1. A configuration with problems is no fault here. */
export async function runHealth(options: CommonChoice, io: CommandIo = processIo): Promise<number> {
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  const { admin = defaultAdmin } = 'problems' in loaded ? (loaded.validSections ?? {}) : loaded.config;
  if (admin === false) {
    io.err('there is no admin port to ask: admin is false');
    return 1;
  }
  const { status } = await askAdmin(admin, 'GET', '/livez');
  if (status === 200) return 0;
  io.err(status === 0 ? `nothing answers on the admin port ${admin.port}` : `/livez answered ${status}`);
  return 1;
}

/** Purges mappings of the running proxy and its replicas. Exit code 0; 1: failed; 2: bad usage; 78: bad configuration. */
export async function runPurge(
  options: CommonChoice & { readonly url?: string; readonly prefix?: string; readonly all?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const { url, prefix, all } = options;
  const given = [url, prefix, all || undefined].filter((one) => one !== undefined);
  if (given.length !== 1) {
    io.err('give exactly one of --url URL, --prefix PREFIX and --all');
    return badUsage;
  }
  const loaded = await loadSettings(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { admin } = loaded.config;
  if (admin === false) {
    io.err('the admin port is switched off (admin: false), so the running proxy cannot be asked');
    return 1;
  }
  const body = url !== undefined ? { url } : prefix !== undefined ? { prefix } : { all: true };
  const reply = await askAdmin(admin, 'POST', '/api/purge', body);
  if (reply.status === 200) {
    io.out(`purged: ${url ?? prefix ?? 'all'}`);
    return 0;
  }
  io.err(reply.status === 0 ? `nothing answers on the admin port ${admin.port}` : reply.body);
  return 1;
}

/** One request to the admin port of the proxy that runs on this machine. Never rejects; `status` is 0 without an answer. */
export function askAdmin(
  admin: { readonly host: string; readonly port: number; readonly token?: string | undefined },
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: string }> {
  const headers: http.OutgoingHttpHeaders = { 'Content-Type': 'application/json', Host: 'localhost' };
  // A listener on all addresses is asked at the loopback address.
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[admin.host] ?? admin.host;
  if (admin.token !== undefined) headers.Authorization = `Bearer ${admin.token}`;
  return new Promise((resolve) => {
    const none = () => resolve({ status: 0, body: '' });
    const options = { host, port: admin.port, path, method, headers, timeout: 5_000 };
    const request = http.request(options, (response) => {
      text(response).then((all) => resolve({ status: response.statusCode ?? 0, body: all }), none);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', none);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The record of a request among the last decisions of the running proxy; undefined: it is not there, or there is no answer. */
export async function findDecision(
  admin: Parameters<typeof askAdmin>[0],
  id: string,
): Promise<string | undefined> {
  const query = new URLSearchParams({ id, limit: '200' });
  const { status, body } = await askAdmin(admin, 'GET', `/api/decisions/search?${query}`);
  const decisions = status === 200 ? parseJsonObject(body)?.decisions : undefined;
  const found = Array.isArray(decisions) ? decisions.find((one) => one?.requestId === id) : undefined;
  return found === undefined ? undefined : JSON.stringify(found);
}
