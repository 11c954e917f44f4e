/**
 * A text of its own, for what outlives a request. V8 makes a part of a text, and what is put together of such parts, by
 * pointing at the whole: a path of 150 octets would keep alive the 64 KiB of the request line that it was cut from.
 */
export function copyText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
