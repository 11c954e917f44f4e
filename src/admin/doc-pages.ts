import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Tokens } from 'marked';

/** The package contains this folder; built files are at the same depth as the sources. */
const folder = new URL('../../docs/', import.meta.url);

/** Names of the pages of docs/, such as `operations.md`. Empty if the folder is missing. */
export function listDocPages(): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.md'));
  } catch {
    return [];
  }
}

/** A page as HTML, with the anchors that its links use. Undefined: it cannot be read. */
export async function renderDocPage(name: string): Promise<string | undefined> {
  const text = await readFile(new URL(name, folder), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { Marked } = await import('marked');
  const known = new Set(listDocPages());
  const renderer = {
    heading(this: Inline, { tokens, depth, text }: Tokens.Heading): string {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>`;
    },
    /** Links to files that this port does not serve become text. */
    link(this: Inline, { href, tokens }: Tokens.Link): string {
      const text = this.parser.parseInline(tokens);
      const isServed = /^(https?:|#)/.test(href) || known.has(href.replace(/#.*/, ''));
      return isServed ? `<a href="${href}">${text}</a>` : text;
    },
    image: () => '',
  };
  const content = await new Marked({ renderer }).parse(text);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name} - shopward</title>
<link rel="icon" href="../console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="../console/base.css">
<link rel="stylesheet" href="../console/doc.css">
</head>
<body>
<main class="doc">
<p><a href="../">Console</a> · <a href="operations.md">Runbook</a> · <a href="reasons.md">Reasons</a></p>
${content}</main>
</body>
</html>
`;
}

interface Inline {
  readonly parser: { parseInline(tokens: Tokens.Generic[]): string };
}

/** Anchors as on GitHub: lower case, without punctuation, spaces as hyphens. */
function anchorOf(title: string): string {
  const plain = title.toLowerCase().replace(/[^\p{L}\p{N}\- _]/gu, '');
  return plain.replaceAll(' ', '-');
}
