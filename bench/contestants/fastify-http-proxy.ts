/** @fastify/http-proxy as its readme shows it, with @fastify/jwt in front of /orders when a public key is given. */
import { readFileSync } from 'node:fs';
import httpProxy from '@fastify/http-proxy';
import jwt from '@fastify/jwt';
import Fastify from 'fastify';

const [, , upstream = '', publicKeyFile] = process.argv;
const app = Fastify({ bodyLimit: 8 << 20 });
if (publicKeyFile !== undefined) {
  // `cache` remembers verified tokens, as shopward does.
  const secret = { public: readFileSync(publicKeyFile, 'utf8') };
  app.register(jwt, { secret, verify: { algorithms: ['RS256'], cache: 20_000 } });
  const preHandler = async (request: { jwtVerify(): Promise<unknown> }) => void (await request.jwtVerify());
  app.register(httpProxy, { upstream, prefix: '/orders', rewritePrefix: '/orders', preHandler });
}
app.register(httpProxy, { upstream });
const address = await app.listen({ port: 0, host: '127.0.0.1' });
console.log(`listening on ${new URL(address).port}`);
