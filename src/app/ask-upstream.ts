import type { UpstreamEngine, UpstreamExchange, UpstreamFault } from '../upstream/engine.ts';
import { CollectedBody } from '../upstream/request-body.ts';
import type { AskUpstream, LookupError } from '../url-resolver/source.ts';

/** Questions of our own to the upstream, over the engine that forwards; `upstreamHost` where a question names no Host. */
export function createAskUpstream(engine: UpstreamEngine, upstreamHost: string): AskUpstream {
  return ({ target, fields, timeoutMs, maxBodyBytes }) =>
    new Promise((resolve) => {
      const collected = new CollectedBody(maxBodyBytes);
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
      const request = {
        method: 'GET',
        target,
        fields: hasHost ? fields : ['Host', upstreamHost, ...fields],
        body: null,
      };
      exchange = engine.dispatch(request, {
        onHead(answerStatus, _reason, list) {
          status = answerStatus;
          answerFields = list;
        },
        onData(chunk) {
          if (collected.length + chunk.length > maxBodyBytes) stop('invalid');
          else collected.add(chunk);
          return true;
        },
        onEnd() {
          clearTimeout(timer);
          resolve({ status, fields: answerFields, body: collected.octets() });
        },
        onFault(fault) {
          clearTimeout(timer);
          resolve({ fault: end ?? errorOf(fault) });
        },
      });
    });
}

/** In the words of `forward.ts`. */
function errorOf({ kind, answerBegun }: UpstreamFault): LookupError['fault'] {
  if (kind === 'connect-timeout') return 'timeout';
  if (kind === 'overloaded') return 'overloaded';
  return kind === 'malformed' || (kind === 'reset' && answerBegun) ? 'invalid' : 'unreachable';
}
