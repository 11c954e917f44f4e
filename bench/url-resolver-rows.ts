import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

/** A SEF URL of a usual length; all have the same length. */
export function urlOf(row: number): string {
  return `/en/computer/notebooks/lenovo-thinkpad-${String(row).padStart(7, '0')}`;
}

export function idOf(url: string): string {
  return url.slice(-7);
}

/** Writes a mapping file of `rows` rows. */
export async function writeRows(path: string, rows: number): Promise<void> {
  const stream = createWriteStream(path);
  stream.write('url,entityType,entityId\n');
  for (let row = 0; row < rows; row += 10_000) {
    const lines = Array.from({ length: Math.min(10_000, rows - row) }, (_, i) => {
      const url = urlOf(row + i);
      return `${url},abstract-products,${idOf(url)}\n`;
    });
    if (!stream.write(lines.join(''))) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'close');
}
