import { type TagScripts, buildTagScripts } from '../../../src/entity-tags/lua.ts';
import type { RecordForms } from '../../../src/redis/membership.ts';

/** The key whose value (in microseconds) is added to the clock of `clockedScripts`, which stands still otherwise. */
export const clockShiftKey = 'test:clock-shift';

/** One replacement in the texts of the scripts; an error if no script contains `search`. */
export interface Break {
  readonly search: string;
  readonly replace: string;
}

/** The same key for one marker of a Cluster, in its slot. The clock of a Cluster also runs by itself. */
export const clockShiftKeyOf = (marker: string) => `${marker}:clock-shift`;

/** The scripts with a clock that a test moves, and with the breaks that a test asks for. */
export function clockedScripts(
  breaks: readonly Break[] = [],
  { isCluster = false, forms }: { readonly isCluster?: boolean; readonly forms?: RecordForms } = {},
): TagScripts {
  const shiftKey = isCluster ? `KEYS[1] .. '${clockShiftKeyOf('')}'` : `'${clockShiftKey}'`;
  const runningClock = 'time[1] * 1000000 + time[2]';
  const clock = isCluster ? runningClock : '1800000000000000';
  const met = new Set<Break>();
  const scripts = buildTagScripts((lua) => {
    let text = swap(lua, {
      search: `return ${runningClock}`,
      replace: `return ${clock} + tonumber(redis.call('GET', ${shiftKey}) or '0')`,
    });
    for (const each of breaks) {
      if (!text.includes(each.search)) continue;
      met.add(each);
      text = swap(text, each);
    }
    return text;
  }, forms);
  for (const each of breaks) if (!met.has(each)) throw new Error(`nothing to break: ${each.search}`);
  return scripts;
}

export function swap(text: string, { search, replace }: Break): string {
  const parts = text.split(search);
  if (parts.length !== 2) throw new Error(`${parts.length - 1} times in the text: ${search}`);
  return parts.join(replace);
}
