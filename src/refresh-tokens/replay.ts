import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { Answer, Rejection } from '../http/rejection.ts';
import type { ForwardOutcome, UpstreamHooks } from '../upstream/hooks.ts';
import type { RefreshTokenContext } from './context.ts';
import type { TokenEndpoint } from './endpoints.ts';
import { readIssuedTokens, readsAnswer } from './issue.ts';
import { refuseRefresh } from './refusals.ts';
import { lifeOf, type TokenDigest, type UsedAnswer } from './token-values.ts';

/** A refresh token as it was sent. */
export interface PresentedToken {
  readonly text: string;
  readonly digest: TokenDigest;
  readonly endpoint: TokenEndpoint;
  readonly request: Pick<CanonicalRequest, 'fields'>;
}

/**
 * Answers a used token that is sent again: within the leeway with the response of its refresh. After that `replay` decides:
 * `refuse`; `forward`, so that the provider notices, and refuse; or `end-family` and refuse. Rejects as the store does.
 */
export async function answerReplay(
  context: RefreshTokenContext,
  presented: PresentedToken,
  used: UsedAnswer,
  isObserved: boolean,
): Promise<UpstreamHooks | Answer | Rejection> {
  const { leewayMs, emit } = context;
  const { format } = presented.endpoint;
  // An OAuth provider may detect reuse (RFC 9700 section 4.14.2), but only if it sees the token.
  const replay = context.replay ?? (format === 'json-api' ? 'refuse' : 'forward');
  const refused = refuseRefresh(format, 'used');
  const isWithinLeeway = used.isAwaited || used.usedForMs < leewayMs;
  if (isWithinLeeway && !isObserved && used.sealed !== null) {
    const answer = openAnswer(presented, used.sealed);
    if (answer !== undefined && !(await isOver(context, presented, used, answer))) {
      emit('exchange-repeated');
      return answer;
    }
  }
  emit('exchange-refused-used');
  // Within the leeway a second tab is more likely than a thief.
  if (isWithinLeeway || isObserved || replay === 'refuse') return refused;
  if (replay === 'forward') return forwardReplay(context, presented, refused, used);
  await endFamily(context, used);
  return refused;
}

/** Whether the used token, a token of its answer, their user or family was revoked meanwhile. */
async function isOver(
  { store, digests, answerBytes }: RefreshTokenContext,
  { digest, endpoint }: PresentedToken,
  used: UsedAnswer,
  { fields, body }: Answer & { readonly body: Buffer },
): Promise<boolean> {
  const issued = readIssuedTokens(body, fields, [endpoint.fields], answerBytes);
  if (issued === 'unreadable') return true;
  const tokens = [digest, ...issued.tokens.map(({ refreshToken }) => digests.ofToken(refreshToken))];
  const revoked = await Promise.all(tokens.map((token) => store.isRevoked(token)));
  return revoked.includes(true) || (await lifeOf(store, used)).isOver;
}

/** Forwards the used token, so that the provider can detect the reuse. Only refusals are passed on: a redirect may have tokens. */
function forwardReplay(
  context: RefreshTokenContext,
  { request }: PresentedToken,
  refused: Rejection,
  used: UsedAnswer,
): UpstreamHooks {
  const { emit } = context;
  emit('replay-forwarded');
  return {
    ...readsAnswer(context, request, false),
    withholds: (status) => status < 400,
    ignoreClientAbort: true,
    async onOutcome(outcome) {
      if (outcome.kind !== 'answered' || outcome.status >= 400) return {};
      emit('replay-withheld');
      await endFamily(context, used);
      return { rejection: refused };
    },
  };
}

async function endFamily({ store, retries, emit }: RefreshTokenContext, { family, lifetimeMs }: UsedAnswer) {
  if (family === null) return;
  await retries.write(() => store.endFamily(family, lifetimeMs));
  emit('family-ended');
}

/** Octets of the longest body that is kept. */
const maxBodyBytes = 16_384;
const [ivBytes, tagBytes] = [12, 16];

/**
 * Seals the response of a refresh that has just succeeded, for the leeway: with AES-256-GCM, under a key that HKDF-SHA-256
 * (RFC 5869) derives from the token as it was sent. So only a sender of the same token can open it. The store, which has only
 * its digest, cannot. Null: there is no response, it is too long, or it has a content coding, which the next client may not
 * accept.
 */
export function sealForLeeway(
  { leewayMs }: RefreshTokenContext,
  presented: PresentedToken,
  outcome: ForwardOutcome,
): { readonly sealed: string; readonly leewayMs: number } | null {
  if (leewayMs === 0 || outcome.kind !== 'answered' || outcome.body === null) return null;
  const { status, fields, body } = outcome;
  if (body.length > maxBodyBytes || fieldValue(fields, 'content-encoding') !== undefined) return null;
  const head = { status, type: fieldValue(fields, 'content-type') ?? null };
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', keyOf(presented), iv).setAAD(boundTo(presented));
  const parts = [cipher.update(`${JSON.stringify(head)}\n`), cipher.update(body), cipher.final()];
  const sealed = Buffer.concat([iv, ...parts, cipher.getAuthTag()]).toString('base64url');
  return { sealed, leewayMs };
}

/** Undefined where it was sealed for another token or endpoint. */
function openAnswer(presented: PresentedToken, sealed: string) {
  const octets = Buffer.from(sealed, 'base64url');
  if (octets.length < ivBytes + tagBytes) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', keyOf(presented), octets.subarray(0, ivBytes))
    .setAAD(boundTo(presented))
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
  const typed = type === null ? [] : ['Content-Type', type];
  const fields = [...typed, 'Content-Length', String(body.length), 'Cache-Control', 'no-store'];
  return { status, fields, body };
}

/** Additional data: an answer is opened only for the same token at the same endpoint. */
function boundTo({ digest, endpoint }: PresentedToken): Buffer {
  return Buffer.from(`${digest} ${endpoint.method} ${endpoint.path}`);
}

function keyOf({ text }: PresentedToken): Buffer {
  return Buffer.from(hkdfSync('sha256', text, '', 'shopward: answer of a refresh', 32));
}
