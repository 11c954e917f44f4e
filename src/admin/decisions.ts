import type { ServerResponse } from 'node:http';
import { isolate } from '../lib/faults.ts';
import type { StreamEndpoint } from './admin-endpoint.ts';
import type { Decision, DecisionLog } from './decision-log.ts';
import { wholeNumber } from './query.ts';

/** Exported for its tests. */
export interface DecisionsOptions {
  readonly log: DecisionLog;
  /** Decisions a second that one console gets; of the rest it gets the number only. Default: 40. Only tests set it. */
  readonly maxPerSecond?: number;
  /** Consoles that may watch at a time; one more gets 503. Default: 16. Only tests set it. */
  readonly maxConsoles?: number;
  /** Milliseconds in which a console may read nothing before its connection is closed. Default: 30000. */
  readonly stallTimeoutMs?: number;
}

interface Console {
  readonly response: ServerResponse;
  cursor: number;
  /** Decisions that it may be sent now: a token bucket of two seconds. */
  allowance: number;
  quietTicks: number;
  stalledTicks: number;
}

const tickMs = 250;
const heartbeatTicks = 15_000 / tickMs;
const backlog = 100;

/**
 * `GET /api/decisions`: server-sent events, `decision` with a decision and `skipped` with how many were left out.
 * `?after=SEQ` resumes after that decision. Requests never wait for a console: they write into the decision log, which a
 * timer reads while somebody watches, and nothing is written to a console that does not read.
 */
export function createDecisionsEndpoint(options: DecisionsOptions): StreamEndpoint {
  const { log, maxPerSecond = 40, maxConsoles = 16, stallTimeoutMs = 30_000 } = options;
  const perTick = (maxPerSecond * tickMs) / 1000;
  const consoles = new Set<Console>();
  let timer: NodeJS.Timeout | undefined;

  const tick = () => {
    for (const one of consoles) {
      if (one.response.writableNeedDrain) {
        if (++one.stalledTicks * tickMs > stallTimeoutMs) one.response.destroy();
      } else {
        one.stalledTicks = 0;
        one.allowance = Math.min(one.allowance + perTick, maxPerSecond * 2);
        isolate(
          () => flush(one, log),
          () => one.response.destroy(),
        );
      }
    }
  };

  return {
    method: 'GET',
    path: '/api/decisions',
    parameters: {
      after: wholeNumber(),
    },
    stream(incoming, response, query) {
      if (consoles.size >= maxConsoles) {
        response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '10' });
        response.end(`${JSON.stringify({ error: 'too many consoles are watching' })}\n`);
        return;
      }
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
      response.flushHeaders();
      if (incoming.method === 'HEAD') return void response.end();
      const after = Number(query.get('after') ?? 0);
      // A higher number than the last is from before a restart, and means nothing here.
      const cursor = Math.max(after <= log.last ? after : 0, log.last - backlog);
      const one: Console = { response, cursor, allowance: backlog, quietTicks: 0, stalledTicks: 0 };
      consoles.add(one);
      response.once('close', () => {
        consoles.delete(one);
        if (consoles.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      });
      flush(one, log);
      one.allowance = maxPerSecond;
      timer ??= setInterval(tick, tickMs).unref();
    },
  };
}

function flush(one: Console, log: DecisionLog): void {
  const missed = log.last - one.cursor;
  if (missed === 0) {
    if (++one.quietTicks % heartbeatTicks === 0) one.response.write(': still here\n\n');
    return;
  }
  one.quietTicks = 0;
  const chosen = chooseNotable(log.since(one.cursor), Math.floor(one.allowance));
  one.allowance -= chosen.length;
  one.cursor = log.last;
  let text = '';
  for (const decision of chosen) {
    text += `id: ${decision.seq}\nevent: decision\ndata: ${JSON.stringify(decision)}\n\n`;
  }
  const skipped = missed - chosen.length;
  if (skipped > 0) text += `event: skipped\ndata: ${skipped}\n\n`;
  one.response.write(text);
}

/** Where not all can be sent: refused and observed ones before forwarded ones, new ones before old ones. */
function chooseNotable(decisions: readonly Decision[], most: number): readonly Decision[] {
  if (decisions.length <= most) return decisions;
  const isNotable = ({ decision, observed }: Decision) => decision !== 'forwarded' || observed !== undefined;
  const notable = decisions.filter(isNotable).slice(-most);
  const room = most - notable.length;
  const plain = room === 0 ? [] : decisions.filter((one) => !isNotable(one)).slice(-room);
  return [...notable, ...plain].sort((a, b) => a.seq - b.seq);
}
