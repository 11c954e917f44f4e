import { cartIds, defaultCustomerReference as customer, seedPassword as password } from './data/ids.ts';

const email = 'sonia@shop.example';

export interface Places {
  readonly url: string;
  readonly adminUrl: string;
  readonly shopUrl: string;
  readonly controlUrl: string | null;
}

export interface Stop {
  readonly title: string;
  readonly commands: readonly string[];
  /** What the last command's output must hold; the demo's own test pastes every command and looks for it. */
  readonly shows: string;
}

const json = "-H 'Accept: application/vnd.api+json'";
const sends = "-H 'Content-Type: application/vnd.api+json'";
const readTag = `TAG=$(curl -si ${json} -H "Authorization: Bearer $TOKEN" $CART | sed -n 's/^[Ee][Tt]ag: *//p' | tr -d '\\r')`;

/** The tour, in order: each command works when it is pasted into a shell, later ones use what earlier ones set. */
export function stops({ url, adminUrl, shopUrl }: Places): readonly Stop[] {
  const credentials = JSON.stringify({
    data: { type: 'access-tokens', attributes: { username: email, password } },
  });
  return [
    {
      title: 'The catalogue is open: the request passes to the shop',
      commands: [`curl -s ${json} ${url}/abstract-products/134 | head -c 300`],
      shows: 'abstract-products',
    },
    {
      title: `The shop itself would show anybody the orders of customer ${customer} ...`,
      commands: [`curl -s ${json} ${shopUrl}/orders | head -c 300`],
      shows: 'DE--1001',
    },
    {
      title: '... shopward refuses: no token, and the shop is not asked',
      commands: [`curl -si ${json} ${url}/orders`],
      shows: '"code":"002"',
    },
    {
      title: 'Not a token',
      commands: [`curl -si ${json} -H 'Authorization: Bearer abc' ${url}/orders`],
      shows: '"code":"001"',
    },
    {
      title: 'Sign in, and ask again',
      commands: [
        `TOKEN=$(curl -s ${json} ${sends} -d '${credentials}' ${url}/access-tokens | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')`,
        `curl -s ${json} -H "Authorization: Bearer $TOKEN" ${url}/orders | head -c 300`,
      ],
      shows: 'DE--1001',
    },
    {
      title: 'Ways around the list that this shop would follow: an alias, an escape, a method override',
      commands: [
        `curl -s -o /dev/null -w '%{http_code}\\n' ${json} ${url}/carts/x/carts/${cartIds.everyday}`,
        `curl -s -o /dev/null -w '%{http_code}\\n' ${json} --path-as-is ${url}/stores/../orders`,
        `curl -s -o /dev/null -w '%{http_code}\\n' ${json} -X POST '${url}/carts/${cartIds.everyday}?_method=DELETE'`,
      ],
      shows: '400',
    },
    {
      title: 'Two clients change one cart: one wins, the other gets 412 code 006 ...',
      commands: [
        `CART=${url}/carts/${cartIds.everyday}`,
        readTag,
        `for NAME in Anna Ben; do curl -s -X PATCH -w ' -> %{http_code}\\n' ${json} ${sends} -H "Authorization: Bearer $TOKEN" -H "If-Match: $TAG" -d '{"data":{"type":"carts","attributes":{"name":"'$NAME'"}}}' $CART | tail -c 120 & done; wait`,
      ],
      shows: '"006"',
    },
    {
      title: '... reads again, and succeeds',
      commands: [
        readTag,
        `curl -si -X PATCH ${json} ${sends} -H "Authorization: Bearer $TOKEN" -H "If-Match: $TAG" -d '{"data":{"type":"carts","attributes":{"name":"Ben"}}}' $CART | grep -i -E '^(HTTP|ETag)'`,
      ],
      shows: '200',
    },
    {
      title: 'A refresh token is exchanged once, although this shop would take it again',
      commands: [
        `REFRESH=$(curl -s ${json} ${sends} -d '${credentials}' ${url}/access-tokens | sed 's/.*"refreshToken":"\\([^"]*\\)".*/\\1/')`,
        `for TIME in first second; do curl -s -w " -> %{http_code} the $TIME time\\n" ${json} ${sends} -d '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"'$REFRESH'"}}}' ${url}/refresh-tokens | tail -c 100; done`,
      ],
      shows: '"004"',
    },
    {
      title: "The resolver: the shop takes its 150 ms once, then the mapping is shopward's",
      commands: [1, 2].map(
        () =>
          `curl -s -o /dev/null -w '%{http_code} in %{time_total} s: %header{cache-status}\\n' -H 'Accept-Language: de' '${url}/url-resolver?url=%2Fde%2Facer-aspire-s7-134'`,
      ),
      shows: 'shopward; hit',
    },
    {
      title: 'What happened, for machines and for people',
      commands: [
        `curl -s ${adminUrl}/readyz`,
        `curl -s ${adminUrl}/metrics | grep shopward_rejections_total`,
      ],
      shows: 'access-token-missing',
    },
  ];
}

export function tour(places: Places): string {
  const lines = [
    '',
    `  shopward   ${places.url}   the proxy: send requests here`,
    `  demo shop  ${places.shopUrl}   the shop behind it, unprotected`,
    `  admin      ${places.adminUrl}   the console; health and metrics`,
    `  control    ${places.controlUrl}   make the shop slow or fail: curl -d '{"latencyMs":500}' ${places.controlUrl}/settings`,
    '',
    `  customer   ${customer}: ${email} / ${password}`,
    '',
    '  Paste these into another terminal; Ctrl-C here ends the demo.',
    '',
  ];
  for (const [index, { title, commands }] of stops(places).entries()) {
    lines.push(`  ${index + 1}. ${title}`, ...commands.map((command) => `     ${command}`), '');
  }
  return `${lines.join('\n')}\n`;
}
