import { constants, createHmac, sign } from 'node:crypto';
import { encode, makeSigner, publicJwk, publicPem, type Signer } from '../../../unit/access/signing.ts';
import type { TokenRecipe } from './corpus-schema.ts';
import { expand, type Values } from './notation.ts';

const outsider = makeSigner('RS256');
const curve = makeSigner('ES256');
const edwards = makeSigner('EdDSA');

/** Makes a token by a recipe of the corpus. Default: a good token of the shop's key. */
export function forgeToken(shop: Signer, recipe: TokenRecipe = {}, values: Values = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const good = { sub: 'DE--21', iat: now - 10, nbf: now - 10, exp: now + 3600, jti: 'corpus' };
  const times = { now: String(now), soon: String(now + 600), past: String(now - 600) };
  const h = segment(recipe.header, { typ: 'JWT', alg: 'RS256' }, { ...values, ...times });
  const p = segment(recipe.claims, good, { ...values, ...times });
  const s = signatureOf(expand(recipe.sign ?? 'shop', values), shop, `${h}.${p}`).toString('base64url');
  return expand(recipe.shape ?? '${h}.${p}.${s}', { ...values, h, p, s, twin: twinOf(s) });
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Another text that decodes to the same octets: an unused bit of the last letter is set. */
function twinOf(text: string): string {
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') | 1];
}

function segment(said: TokenRecipe['claims'], own: object, values: Values): string {
  if (typeof said === 'string') {
    return Buffer.from(expand(said, values), 'latin1').toString('base64url');
  }
  const members = Object.entries({ ...own, ...said }).filter(([, value]) => value !== null);
  return encode(
    Object.fromEntries(members.map(([name, value]) => [name, timeOf(value, Number(values.now))])),
  );
}

/** `now-10`, `now+0.5`. */
function timeOf(value: unknown, now: number): unknown {
  const [, offset] = (typeof value === 'string' && /^now([+-][\d.]+)$/.exec(value)) || [];
  return offset === undefined ? value : now + Number(offset);
}

function signatureOf(how: string, shop: Signer, text: string): Buffer {
  const input = Buffer.from(text);
  const [, bits = '256'] =
    /"HS(\d+)"/.exec(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString()) ?? [];
  const hmac = (secret: string | Buffer) => createHmac(`sha${bits}`, secret).update(input).digest();
  const { privateKey: key } = shop;
  switch (how) {
    case 'shop':
      return sign('sha256', input, key);
    case 'outsider':
      return sign('sha256', input, outsider.privateKey);
    case 'nobody':
      return Buffer.alloc(0);
    case 'zeros':
      return Buffer.alloc(256);
    case 'hmac-pem':
      return hmac(publicPem(shop));
    case 'hmac-pem-crlf':
      return hmac(publicPem(shop).replaceAll('\n', '\r\n'));
    case 'hmac-pkcs1':
      return hmac(shop.publicKey.export({ type: 'pkcs1', format: 'pem' }));
    case 'hmac-n':
      return hmac(String(publicJwk(shop).n));
    case 'hmac-pem-line':
      return hmac(publicPem(shop).trimEnd());
    case 'hmac-der':
      return hmac(shop.publicKey.export({ format: 'der', type: 'spki' }));
    case 'hmac-jwk':
      return hmac(JSON.stringify(publicJwk(shop)));
    case 'hmac-modulus':
      return hmac(Buffer.from(String(publicJwk(shop).n), 'base64url'));
    case 'hmac-empty':
      return hmac('');
    case 'pss':
      return sign('sha256', input, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
    case 'rs384':
      return sign('sha384', input, key);
    case 'rs512':
      return sign('sha512', input, key);
    case 'es256':
      return sign('sha256', input, { key: curve.privateKey, dsaEncoding: 'ieee-p1363' });
    case 'ed25519':
      return sign(null, input, edwards.privateKey);
    default:
      throw new Error(`the corpus knows no signature ${how}`);
  }
}
