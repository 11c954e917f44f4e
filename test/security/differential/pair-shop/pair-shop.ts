import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { findProgram } from '../../../harness/programs.ts';
import { shopRoutes } from './shop-routes.ts';

/** A request as it arrived at the shop. */
export interface ArrivedRequest {
  readonly method: string;
  readonly target: string;
  /** Flat: name, value, name, value ... */
  readonly fields: readonly string[];
  /** base64. */
  readonly body: string;
}

/** An action that the shop runs. */
export interface Action {
  /** Index in `shopRoutes`. */
  readonly route: number;
  /** The version that may precede the pairs: none, the reference shop's (`v1.0`), or one with any prefix. */
  readonly versions: 'off' | 'v' | 'any';
  /** `as it came`: pairs of the octets; `decoded`: routes of Symfony's own matcher. */
  readonly reading: 'as it came' | 'decoded';
  readonly hasId: boolean;
  /** Some id is empty: then the reference shop refuses PATCH and DELETE. */
  readonly hasEmptyId: boolean;
}

export interface Interpretation {
  /** The actions that run, in all modes of the shop. Empty: the shop answers 404. */
  readonly actions: readonly Action[];
  /** Texts that the shop may read as a refresh token. */
  readonly tokens: readonly string[];
}

/** A PHP process that reads a path as pairs of resource and id, with Symfony's Request and routers. */
export interface PairShop {
  interpret(requests: readonly ArrivedRequest[]): Promise<readonly Interpretation[]>;
  close(): Promise<void>;
}

const php = findProgram('php');
const library = php === undefined ? undefined : findProgram('symfony');

/** Undefined if PHP or Symfony is missing; `findProgram` has reported it. */
export const startPairShop: (() => PairShop) | undefined =
  php === undefined || library === undefined ? undefined : () => start(php, library);

function start(program: string, matcherFile: string): PairShop {
  const SYMFONY = path.join(matcherFile, '../../../..');
  const source = path.join(import.meta.dirname, 'shop.php');
  const child = spawn(program, ['-d', 'display_errors=stderr', source], {
    env: { PATH: process.env.PATH, SYMFONY },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = child;
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit');
  // If the shop has ended, `interpret` reports the missing answer.
  stdin.on('error', () => undefined);
  stdin.write(`${JSON.stringify(shopRoutes.map(({ method, parents, type }) => [method, parents, type]))}\n`);
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async interpret(requests) {
      stdin.write(requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
      const interpretations: Interpretation[] = [];
      for (const request of requests) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`the shop ended at ${JSON.stringify(request)}`);
        interpretations.push(JSON.parse(value) as Interpretation);
      }
      return interpretations;
    },
    async close() {
      stdin.end();
      await exited;
      process.off('exit', kill);
    },
  };
}
