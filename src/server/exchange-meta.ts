import type { Socket } from 'node:net';
import { type CanonicalRequest, methods } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import { generateRequestId, plainAddress } from '../http/peer.ts';
import { isFailureOfShop, type Rejection } from '../http/rejection.ts';
import { type ExchangeRecord, type RedactPath, redactUserAgent } from '../telemetry/exchange-record.ts';

/** A request that was refused before it was understood, as far as it may be logged. */
export interface MalformedRequest {
  /** Ours: what a client or a proxy sent was not read. */
  readonly requestId: string;
  readonly method: ExchangeRecord['method'];
  /** Plain ones, up to the first that is not. */
  readonly segments: readonly string[];
}

/** `target`: undefined if not even a request line was read. */
export function readMalformedRequest(method?: string, target?: string): MalformedRequest {
  return {
    requestId: generateRequestId(),
    method: methods.find((one) => one === method) ?? 'other',
    segments: target?.startsWith('/') ? plainSegments(target) : [],
  };
}

const maxSegments = 16;
const plain = /^[A-Za-z0-9._~-]*$/;

/** Whatever follows an escape or an odd octet is cut: it may be a token whose name is escaped, too. */
function plainSegments(target: string): string[] {
  const [path = ''] = target.slice(1, 4096).split('?');
  const segments = path.split('/');
  const odd = segments.findIndex((segment) => !plain.test(segment));
  const end = Math.min(odd < 0 ? segments.length : odd, maxSegments);
  return end === segments.length ? segments : [...segments.slice(0, end), '…'];
}

/** What is known of a request while it is handled. */
export interface ExchangeMeta {
  /** Undefined: it was malformed. */
  readonly request: CanonicalRequest | undefined;
  /** What can be said of a malformed request. */
  readonly malformed: MalformedRequest;
  /** Template of the own endpoint or row that decided; `*` until one did. */
  readonly route: string;
  /** What observe mode only recorded. */
  readonly observed: Rejection | undefined;
  /** `performance.now()` at its head. */
  readonly startedMs: number;
  readonly socket: CountedSocket;
}

/** How it ended. */
export interface Outcome {
  readonly decision: ExchangeRecord['decision'];
  /** 0: none was sent. */
  readonly status: number;
  /** Octets of the body. */
  readonly bytes: number;
  readonly rejection?: Rejection | undefined;
  readonly upstreamMs?: number | undefined;
  readonly fault?: string | undefined;
}

/** The record of a request, whatever became of it. */
export function toExchangeRecord(
  meta: ExchangeMeta,
  outcome: Outcome,
  redactPath: RedactPath,
): ExchangeRecord {
  const { request, observed } = meta;
  const { rejection } = outcome;
  return {
    requestId: request?.requestId ?? meta.malformed.requestId,
    method: request?.method ?? meta.malformed.method,
    route: meta.route,
    path: redactPath(request?.segments ?? meta.malformed.segments),
    decision: rejection && isFailureOfShop(rejection.rejection) ? failed(outcome.decision) : outcome.decision,
    status: outcome.status,
    rejection: rejection?.rejection,
    reason: (rejection ?? observed)?.reason,
    observed: observed?.rejection,
    durationMs: rounded(performance.now() - meta.startedMs),
    upstreamMs: outcome.upstreamMs && rounded(outcome.upstreamMs),
    bytesIn: countReceived(meta.socket),
    bytesOut: outcome.bytes,
    userAgent: redactUserAgent(request && fieldValue(request.fields, 'user-agent')),
    clientAddress: request?.clientAddress ?? plainAddress(meta.socket.remoteAddress),
    fault: outcome.fault,
  };
}

function failed(decision: ExchangeRecord['decision']): ExchangeRecord['decision'] {
  return decision === 'refused' ? 'failed' : decision;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/** Octets that the earlier exchanges of a connection have counted. */
const counted = Symbol('octets that are counted');
type CountedSocket = Pick<Socket, 'bytesRead' | 'remoteAddress'> & { [counted]?: number };

/** What has arrived since the exchange before. */
function countReceived(socket: CountedSocket): number {
  const { bytesRead = 0 } = socket;
  const before = socket[counted] ?? 0;
  socket[counted] = bytesRead;
  return bytesRead - before;
}

/** The code word of a fault, such as `ECONNRESET`; never its message. */
export function codeOf(fault: unknown): string | undefined {
  const code = (fault as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
