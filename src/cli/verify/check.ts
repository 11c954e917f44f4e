export type Area =
  | 'tls'
  | 'reach'
  | 'rows'
  | 'spelling'
  | 'token'
  | 'open'
  | 'list'
  | 'resolver'
  | 'tags'
  | 'unsafe';

/** One thing that was looked at from outside. */
export interface Check {
  readonly area: Area;
  /** The request, or what was compared. */
  readonly name: string;
  /** `skipped`: could not or must not be tried; `advice` says why. */
  readonly outcome: 'ok' | 'failed' | 'skipped';
  readonly expected: string;
  readonly got: string;
  /** What it means, or what to do. */
  readonly advice?: string;
}

export function skip(area: Area, name: string, advice: string): Check {
  return { area, name, outcome: 'skipped', expected: '', got: '', advice };
}

export function createCheck(
  area: Area,
  name: string,
  isOk: boolean,
  expected: string,
  got: string,
  advice?: string,
): Check {
  return {
    area,
    name,
    outcome: isOk ? 'ok' : 'failed',
    expected,
    got,
    ...(!isOk && advice !== undefined && { advice }),
  };
}
