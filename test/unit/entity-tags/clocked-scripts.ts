import { type TagScripts, buildTagScripts } from '../../../src/entity-tags/lua.ts';
import type { RecordForms } from '../../../src/redis/membership.ts';

/** Key that shifts the clock of `clockedScripts`, in microseconds. */
export const clockShiftKey = 'test:clock-shift';

/** One exact replacement in the text of every script; refuses one that does not meet. */
export interface Break {
  readonly search: string;
  readonly replace: string;
}

/** For a Cluster: the key that shifts the clock for one marker, which is of the marker's slot. */
export const clockShiftKeyOf = (marker: string) => `${marker}:clock-shift`;

/** The scripts with a clock that a test moves, and with what it breaks on purpose. */
export function clockedScripts(
  breaks: readonly Break[] = [],
  { isCluster = false, forms }: { readonly isCluster?: boolean; readonly forms?: RecordForms } = {},
): TagScripts {
  const shiftKey = isCluster ? `KEYS[1] .. '${clockShiftKeyOf('')}'` : `'${clockShiftKey}'`;
  const met = new Set<Break>();
  const scripts = buildTagScripts((lua) => {
    let text = swap(lua, {
      search: 'return time[1] * 1000000 + time[2]',
      replace: `return time[1] * 1000000 + time[2] + tonumber(redis.call('GET', ${shiftKey}) or '0')`,
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
