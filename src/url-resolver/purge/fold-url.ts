import { decodeOctets } from '../../http/form-encoding.ts';

/** As often as the shop decodes what it was given already decoded. */
const shopDecodings = 2;

/**
 * One text for all spellings that the shop takes for one URL: it decodes again, trims, ignores case, and puts `-` for quotes,
 * spaces and line breaks. Where its reading is unclear this one is the broader: a purge of too much costs a question, one of
 * too little gives out what is wrong. Slashes count, as they do there.
 */
export function foldUrl(url: string): string {
  let text = url;
  for (let i = 0; i < shopDecodings; i += 1) {
    // Also where it is not UTF-8: what cannot be read is then alike.
    if (text.includes('%') || text.includes('+')) text = decodeOctets(Buffer.from(text)).toString();
  }
  const dashed = text
    .replaceAll('\0', ' ')
    .trim()
    .replace(/["' \r\n]/g, '-');
  // Lower case alone depends on what follows a sigma.
  return dashed.toLowerCase().toUpperCase();
}
