import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';

export interface ConsoleAsset {
  readonly type: string;
  readonly entityTag: string;
  readonly content: Buffer;
  readonly isPage: boolean;
}

/** The files of the console page, read once: a name that is not among them cannot be asked for. */
export interface ConsoleAssets {
  /** `/` is the page, `/console/<name>` what it loads. */
  find(path: string): ConsoleAsset | undefined;
  send(asset: ConsoleAsset, incoming: IncomingMessage, response: ServerResponse, status: 200 | 401): void;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing inline, nothing from elsewhere, no markup made from text (`require-trusted-types-for`). */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export function createConsoleAssets(folder = path.join(import.meta.dirname, 'console')): ConsoleAssets {
  const assets = new Map<string, ConsoleAsset>();
  for (const name of readdirSync(folder)) {
    const type = types[path.extname(name)];
    if (type === undefined) continue;
    const content = readFileSync(path.join(folder, name));
    const entityTag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
    const isPage = name === 'index.html';
    assets.set(isPage ? '/' : `/console/${name}`, { type, entityTag, content, isPage });
  }
  return {
    find: (place) => assets.get(place),
    send({ type, entityTag, content }, incoming, response, status) {
      response.setHeader('Content-Security-Policy', contentSecurityPolicy);
      response.setHeader('Referrer-Policy', 'no-referrer');
      response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
      response.setHeader('X-Frame-Options', 'DENY');
      response.setHeader('Cache-Control', status === 200 ? 'no-cache' : 'no-store');
      response.setHeader('ETag', entityTag);
      if (status === 200 && incoming.headers['if-none-match'] === entityTag) {
        response.writeHead(304);
        response.end();
        return;
      }
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': content.length });
      response.end(incoming.method === 'HEAD' ? undefined : content);
    },
  };
}
