import { randomBytes } from 'node:crypto';
import { decodeOctets } from '../http/form-encoding.ts';

/** The URLs to purge; `url` and `prefix` are decoded, as in the `url` attribute. */
export type Purge = { readonly url: string } | { readonly prefix: string } | 'all';

/** The scope of everything: the empty prefix. */
export const everything = 'p:';
/** Most scopes that have an epoch; one more purge becomes a purge of everything. */
export const maxScopes = 10_000;

/** A purge's scope as text: `p:` and a prefix, or `u:` and a folded URL. */
export function scopeOf(purge: Purge): string {
  if (purge === 'all') return everything;
  return 'url' in purge ? `u:${foldUrl(purge.url)}` : `p:${purge.prefix}`;
}

export function createEpoch(): string {
  return randomBytes(9).toString('base64url');
}

/** The epochs of all scopes, the one of the last purge, and those of the purges before it. */
export interface EpochTable {
  readonly last: string;
  /** Newest first; the oldest are left out. */
  readonly recent: readonly string[];
  readonly epochs: ReadonlyMap<string, string>;
}

/** The epochs that a process knows, by the rule of docs/decisions/url-mapping-purge.md: equal stamps mean no purge in between. */
export class PurgeEpochs {
  /** Counts changes; while it is the same, so is every stamp. */
  version = 0;
  #last = createEpoch();
  #everything = this.#last;
  /** By folded URL. */
  readonly #urls = new Map<string, string>();
  readonly #prefixes = new Map<string, { readonly folded: string; readonly epoch: string }>();

  /** Epoch of the last purge. */
  get last(): string {
    return this.#last;
  }

  /** The epochs of all scopes that cover the URL. */
  stampOf(url: string): string {
    if (this.#urls.size === 0 && this.#prefixes.size === 0) return this.#everything;
    const foldedUrl = foldUrl(url);
    const stamp = [this.#everything];
    const own = this.#urls.get(foldedUrl);
    if (own !== undefined) stamp.push(own);
    for (const [prefix, { folded, epoch }] of this.#prefixes) {
      // Unfolded as well: a prefix may end in the middle of characters that are folded together.
      if (url.startsWith(prefix) || foldedUrl.startsWith(folded)) stamp.push(epoch);
    }
    return stamp.sort().join();
  }

  /** Gives a scope a new epoch. */
  raise(scope: string, epoch: string): void {
    this.version += 1;
    this.#last = epoch;
    if (scope === everything || this.#urls.size + this.#prefixes.size >= maxScopes) this.#clear(epoch);
    else this.#set(scope, epoch);
  }

  /** Takes over all epochs of a store. False: the own last purge is not among them, so purges may be lost. */
  replace({ last, recent, epochs }: EpochTable): boolean {
    const isContinued = recent.includes(this.#last);
    this.version += 1;
    this.#last = last;
    this.#clear(epochs.get(everything) ?? createEpoch());
    for (const [scope, epoch] of epochs) if (scope !== everything) this.#set(scope, epoch);
    return isContinued;
  }

  #set(scope: string, epoch: string): void {
    const text = scope.slice(2);
    if (scope.startsWith('u:')) this.#urls.set(text, epoch);
    else this.#prefixes.set(text, { folded: foldUrl(text), epoch });
  }

  #clear(epoch: string): void {
    this.#everything = epoch;
    this.#urls.clear();
    this.#prefixes.clear();
  }
}

/** How often the shop decodes a value again that was decoded already. */
const shopDecodings = 2;

/**
 * The same text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and replaces quotes,
 * spaces and line breaks by `-`. In doubt it folds too much: to purge too much costs a look-up, to purge too little gives wrong
 * answers. Slashes count, as at the shop. Exported for its tests.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Invalid UTF-8 as well: it becomes U+FFFD, and so alike.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Both, since the lower case of a sigma depends on what follows it.
  return dashed.toLowerCase().toUpperCase();
}
