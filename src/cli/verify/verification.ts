import {
  compileProtectedList,
  type ProtectedResource,
  type ProtectedResources,
} from '../../access/protected-list.ts';
import type { Config } from '../../config/schema.ts';
import type { Method } from '../../http/canonical-request.ts';
import type { Rejections } from '../../http/rejection.ts';
import type { ProbeClient } from './probe-client.ts';

/** What every group of checks goes by. */
export interface Verification {
  readonly client: ProbeClient;
  readonly config: Config;
  readonly list: ProtectedResources;
  readonly rejections: Rejections;
  /** Stands for every id: nothing has it. */
  readonly id: string;
  /** Undefined: none was given, or it must not be sent. */
  readonly token: string | undefined;
  /** Requests at once. */
  readonly concurrency: number;
}

/** A request that a row of the list must refuse without a token. */
export interface RowProbe {
  readonly row: ProtectedResource;
  readonly method: Method;
  readonly path: string;
  readonly hasId: boolean;
}

/** The path of a template with `id` in place of every parameter and of the rest. */
export function samplePath(template: string, id: string): string {
  return template.replace(/\{[^{}]*\}|\*\*$/g, id);
}

/** One probe per method of each row, in the order of the list. */
export function rowProbes({ list, id }: Pick<Verification, 'list' | 'id'>): RowProbe[] {
  const unsafe = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;
  return list.rows.flatMap((row) =>
    (row.method === 'ANY' ? (['GET', ...unsafe] as const) : [row.method]).map((method) => {
      const path = samplePath(row.template, id);
      return { row, method, path, hasId: path !== row.template };
    }),
  );
}

/** Whether a request without a token is refused: false for open routes and for rows that only observe. */
export function createRefusalTest({ config, list }: Pick<Verification, 'config' | 'list'>) {
  const compiled = compileProtectedList(list, config.request);
  return (method: Method, path: string): boolean => {
    const requirement = compiled.match({ method, segments: path.slice(1).split('/'), isFormPost: false });
    return requirement !== undefined && !requirement.observe && config.mode !== 'observe';
  };
}
