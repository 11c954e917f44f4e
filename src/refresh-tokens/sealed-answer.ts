import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Answer } from '../http/answer.ts';
import { type FieldList, fieldValue } from '../http/field-list.ts';

/**
 * The answer of an exchange, sealed for whoever sends the same token again: AES-256-GCM under a key that HKDF-SHA-256
 * (RFC 5869) makes of the token. The store keeps what is sealed beside the token's digest, and cannot open it.
 */
export interface SealedFor {
  /** As it was sent: another spelling of it opens nothing. */
  readonly token: string;
  /** What the answer is bound to: its digest, its endpoint. */
  readonly context: string;
}

/** Octets of a body that are kept. */
const maxBodyBytes = 16_384;
const [ivBytes, tagBytes] = [12, 16];

/** Undefined where the body is too long, or coded as the next client may not want it. */
export function sealAnswer(
  { token, context }: SealedFor,
  { status, fields, body }: { readonly status: number; readonly fields: FieldList; readonly body: Buffer },
): string | undefined {
  if (body.length > maxBodyBytes || fieldValue(fields, 'content-encoding') !== undefined) return undefined;
  const head = { status, type: fieldValue(fields, 'content-type') ?? null };
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', keyOf(token), iv).setAAD(Buffer.from(context));
  const sealed = [cipher.update(`${JSON.stringify(head)}\n`), cipher.update(body), cipher.final()];
  return Buffer.concat([iv, ...sealed, cipher.getAuthTag()]).toString('base64url');
}

/** Undefined where it was sealed for another token, or for another endpoint. */
export function openAnswer({ token, context }: SealedFor, sealed: string): Answer | undefined {
  const octets = Buffer.from(sealed, 'base64url');
  if (octets.length < ivBytes + tagBytes) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', keyOf(token), octets.subarray(0, ivBytes))
    .setAAD(Buffer.from(context))
    .setAuthTag(octets.subarray(-tagBytes));
  const opened = decipher.update(octets.subarray(ivBytes, -tagBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  const end = opened.indexOf('\n');
  const { status, type } = JSON.parse(opened.toString('utf8', 0, end));
  const body = opened.subarray(end + 1);
  return {
    status,
    fields: [
      ...(type === null ? [] : ['Content-Type', type]),
      'Content-Length',
      String(body.length),
      'Cache-Control',
      'no-store',
    ],
    body,
  };
}

function keyOf(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, '', 'shopward: answer of a refresh', 32));
}
