import { readFileSync } from 'node:fs';
import { cartIds, defaultCustomerReference as customer, seedPassword as password } from './data/ids.ts';

const email = 'sonia@shop.example';

export interface Addresses {
  readonly url: string;
  readonly adminUrl: string;
  readonly shopUrl: string;
}

export interface Stop {
  readonly title: string;
  readonly commands: readonly string[];
  /** Expected in the output of the last command; the demo's test pastes every command and checks this. */
  readonly shows: string;
}

/**
 * Names and addresses first, then steps: a title, shell commands, the expected output of the last one. `<name>` is a value.
 */
const text = readFileSync(new URL('tour.txt', import.meta.url), 'utf8');

function fill(text: string, { url, adminUrl, shopUrl }: Addresses): string {
  const json = "-H 'Accept: application/vnd.api+json'";
  const attributes = { username: email, password };
  const values: Readonly<Record<string, string | null>> = {
    ...{ url, adminUrl, shopUrl, customer, email, password, json, cart: cartIds.everyday },
    sends: "-H 'Content-Type: application/vnd.api+json'",
    credentials: JSON.stringify({ data: { type: 'access-tokens', attributes } }),
    readTag: `TAG=$(curl -si ${json} -H "Authorization: Bearer $TOKEN" $CART | sed -n 's/^[Ee][Tt]ag: *//p' | tr -d '\\r')`,
    resolve: `curl -s -o /dev/null -w '%{http_code} in %{time_total} s: %header{cache-status}\\n' -H 'Accept-Language: de' '${url}/url-resolver?url=%2Fde%2Facer-aspire-s7-134'`,
  };
  return text.replace(/<(\w+)>/g, (found, name: string) => String(name in values ? values[name] : found));
}

/** The steps of the tour, in order. Each command can be pasted into a shell; later ones use variables of earlier ones. */
export function stops(addresses: Addresses): readonly Stop[] {
  const [, ...paragraphs] = fill(text, addresses).split(/^# /m);
  return paragraphs.map((paragraph) => {
    const [title = '', ...lines] = paragraph.trim().split('\n');
    return { title, commands: lines.slice(0, -1), shows: String(lines.at(-1)).replace('=> ', '') };
  });
}

export function tour(addresses: Addresses): string {
  const [head = ''] = fill(text, addresses).split('# ', 1);
  const list = stops(addresses).map(({ title, commands }, index) => {
    return [`  ${index + 1}. ${title}`, ...commands.map((command) => `     ${command}`), '\n'].join('\n');
  });
  return head + list.join('');
}
