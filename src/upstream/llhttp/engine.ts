import type { Socket } from 'node:net';
import { openConnection } from '../connection.ts';
import { ConnectionPool } from '../connection-pool.ts';
import type { EngineOptions, UpstreamEngine } from '../engine.ts';
import { giveBackPiece, LlhttpConnection, newPiece } from './connection.ts';
import { LlhttpExchange, type LlhttpPool } from './exchange.ts';

/** Upstream requests over connections of our own, with node's parser: the cheapest engine, with the same behaviour. */
export function createLlhttpEngine(options: EngineOptions): UpstreamEngine {
  const pool: LlhttpPool = new ConnectionPool(options, (opened, failed) => {
    const piece = newPiece();
    const adopt = (socket: Socket) => new LlhttpConnection(socket, piece, options);
    return openConnection(options, piece, adopt, opened, (fault) => {
      giveBackPiece(piece);
      failed(fault);
    });
  });
  return {
    dispatch(request, handler) {
      const exchange = new LlhttpExchange(request, handler, pool);
      exchange.start();
      return exchange;
    },
    get inFlight() {
      return pool.busy;
    },
    get queued() {
      return pool.waiting;
    },
    close: () => pool.close(),
  };
}
