import type {
  UpstreamEngine,
  UpstreamExchange,
  UpstreamFault,
  UpstreamRequest,
} from '../forwarding/engine.ts';
import type { AskUpstream } from '../url-resolver/sources/ask-upstream.ts';

/** Questions of our own to the upstream, over the engine that forwards; `upstreamHost` where a question names no Host. */
export function createAskUpstream(engine: UpstreamEngine, upstreamHost: string): AskUpstream {
  return ({ target, fields, timeoutMs, maxBodyBytes }) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      let status = 0;
      let answerFields: readonly string[] = [];
      let end: 'timeout' | 'invalid' | undefined;
      let exchange: UpstreamExchange | undefined;
      const stop = (why: 'timeout' | 'invalid') => {
        end ??= why;
        exchange?.abort();
      };
      const timer = setTimeout(() => stop('timeout'), timeoutMs);
      const hasHost = fields.some((part, i) => i % 2 === 0 && part === 'Host');
      const request: UpstreamRequest = {
        method: 'GET',
        target,
        fields: hasHost ? fields : ['Host', upstreamHost, ...fields],
        body: null,
      };
      const dispatch = (freshConnection: boolean) => {
        const begun = engine.dispatch(freshConnection ? { ...request, freshConnection } : request, {
          onHead(answerStatus, _reason, list) {
            status = answerStatus;
            answerFields = list;
          },
          onData(chunk) {
            bytes += chunk.length;
            if (bytes > maxBodyBytes) stop('invalid');
            else chunks.push(chunk);
            return true;
          },
          onEnd() {
            clearTimeout(timer);
            resolve({ status, fields: answerFields, body: Buffer.concat(chunks) });
          },
          onFault(fault) {
            // The upstream gave the connection up while it was idle (RFC 9112 section 9.3.1): once more, on a new one.
            if (isStale(fault) && !freshConnection && end === undefined) {
              dispatch(true);
              return;
            }
            clearTimeout(timer);
            resolve({ fault: end ?? silenceOf(fault) });
          },
        });
        // A fault in this very call may have begun the second exchange already: that one counts.
        if (freshConnection || exchange === undefined) exchange = begun;
        if (end !== undefined) begun.abort();
      };
      dispatch(false);
    });
}

function isStale({ kind, reusedConnection, answerBegun }: UpstreamFault): boolean {
  return kind === 'reset' && reusedConnection && !answerBegun;
}

/** In the words of `fault-rejection.ts`. */
function silenceOf({ kind, answerBegun }: UpstreamFault): 'unreachable' | 'timeout' | 'invalid' {
  if (kind === 'connect-timeout') return 'timeout';
  return kind === 'malformed' || (kind === 'reset' && answerBegun) ? 'invalid' : 'unreachable';
}
