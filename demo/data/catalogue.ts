import type { PriceMode } from './seeds.ts';

export type Locale = 'en' | 'de';
type Localized = Readonly<Record<Locale, string>>;

/** English and German text, or one text for both. */
function localized(text: string, prefix: (locale: Locale) => string = () => ''): Localized {
  const [en = '', de = en] = text.split('|');
  return { en: prefix('en') + en, de: prefix('de') + de };
}

function urls(paths: string): Localized {
  return localized(paths, (locale) => `/${locale}`);
}

const [general, cameras, office] = ['MER000001', 'MER000005', 'MER000006'] as const;

export const merchants = [
  { id: general, name: 'Spryker', url: urls('/merchant/spryker') },
  { id: cameras, name: 'Budget Cameras', url: urls('/merchant/budget-cameras') },
  { id: office, name: 'Office King', url: urls('/merchant/office-king') },
];

/** `grossPrice` is in euro cents. `related`: similar products; `upSelling`: more expensive ones. */
function product(
  sku: string,
  names: string,
  merchantReference: string,
  grossPrice: number,
  related: readonly string[],
  upSelling: readonly string[],
  taxRate = 19,
) {
  const name = localized(names);
  const url = urls(`/${name.en.replace(/,.*/, '').replaceAll(' ', '-').toLowerCase()}-${Number(sku)}`);
  return { id: sku, sku, name, url, merchantReference, grossPrice, related, upSelling, taxRate };
}

export type Product = ReturnType<typeof product>;

const volume = 'Harbours of the north, a picture volume|Häfen des Nordens, ein Bildband';

export const products: readonly Product[] = [
  product('001', 'Canon IXUS 160', cameras, 9999, ['005', '020'], ['020']),
  product('005', 'Canon IXUS 175', cameras, 11900, ['001'], ['020']),
  product('020', 'Sony Cyber-shot DSC-RX100', cameras, 39900, ['001', '005'], ['199']),
  product('199', 'Panasonic HC-V380', general, 27900, ['020'], []),
  product('134', 'Acer Aspire S7', general, 145000, ['087'], ['087']),
  product('087', 'Lenovo ThinkStation P300', general, 189900, ['134'], []),
  product('155', 'Acer Iconia tablet|Acer Iconia Tablet', general, 21900, ['134'], ['134']),
  product('209', 'Desk stapler|Tischhefter', office, 1290, ['218'], ['218']),
  product('218', 'Copy paper A4|Kopierpapier A4', office, 549, ['209'], []),
  product('301', volume, office, 3900, [], ['001'], 7),
];

/** Concrete products: sku, which begins with that of the abstract product; name of the variant; stock. */
const variants: readonly (readonly [sku: string, variant: string, stock: number])[] = [
  ['001_25904006', 'silver', 20],
  ['005_30663301', 'red', 10],
  ['005_30663302', 'blue', 0],
  ['020_21081478', 'black', 8],
  ['199_7016823', '', 5],
  ['134_29759322', '128 GB', 6],
  ['134_26145012', '256 GB', 3],
  ['087_20344652', '', 4],
  ['155_30149933', '', 12],
  ['209_12554247', '', 200],
  ['218_1233', '', 1000],
  ['301_4711', '', 30],
];

export const offers = products.flatMap((product) => {
  const own = variants.filter(([sku]) => sku.startsWith(product.sku));
  return own.map(([sku, variant, stock]) => {
    return { id: sku, sku, name: `${product.name.en} ${variant}`.trim(), stock, product };
  });
});

/** A concrete product, with its abstract one. */
export type Offer = (typeof offers)[number];

export function offersOf(product: Product): readonly Offer[] {
  return offers.filter((offer) => offer.product === product);
}

export function findOffer(concreteSku: string): Offer | undefined {
  return offers.find(({ sku }) => sku === concreteSku);
}

const swissPercent = 115;
export const currencies: readonly string[] = ['EUR', 'CHF'];

/** Price of one unit in cents of the currency, with tax in gross mode and without it in net mode. */
export function unitPriceOf({ grossPrice, taxRate }: Product, currency: string, mode: PriceMode): number {
  const gross = currency === 'CHF' ? Math.round((grossPrice * swissPercent) / 100) : grossPrice;
  return mode === 'GROSS_MODE' ? gross : Math.round((gross * 100) / (100 + taxRate));
}

function node(nodeId: number, parent: number | null, names: string, paths: string) {
  return { id: String(nodeId), nodeId, parent, name: localized(names), url: urls(paths) };
}

export type CategoryNode = ReturnType<typeof node>;

const cameraUrls = (en: string, de: string) => `/cameras-&-camcorders${en}|/kameras-&-camcorder${de}`;

/** Real shops have unescaped `&` and `'` in the URLs of their categories. */
export const categoryNodes: readonly CategoryNode[] = [
  node(1, null, 'Demoshop', ''),
  node(2, 1, 'Cameras & Camcorders|Kameras & Camcorder', cameraUrls('', '')),
  node(3, 2, 'Digital Cameras|Digitalkameras', cameraUrls('/digital-cameras', '/digitalkameras')),
  node(4, 2, 'Camcorders|Camcorder', cameraUrls('/camcorders', '/camcorder')),
  node(5, 1, 'Computer', '/computer'),
  node(6, 5, 'Notebooks', '/computer/notebooks'),
  node(7, 5, "Pc's/Workstations", "/computer/pc's/workstations"),
  node(8, 5, 'Tablets', '/computer/tablets'),
  node(9, 1, 'Office|Büro', '/office|/buero'),
];

function page(id: string, paths: string, ...stores: readonly string[]) {
  return { id, url: urls(paths), stores };
}

/** A page exists only in its stores: the same URL can be 200 in one store and 404 in another. */
export const cmsPages = [
  page('8d378933-22f9-54c7-b45e-db68f2d5d9a3', '/return-policy|/rueckgabe', 'DE', 'AT'),
  page('1e9fb640-9073-55f4-a2d2-535090c92025', '/privacy|/datenschutz', 'DE', 'AT'),
  page('10014bd9-4bba-5a54-b84f-31b4b7efd064', '/pick-up-in-vienna|/abholung-in-wien', 'AT'),
];

/** Old URL -> new URL. If the new one is unknown, so is the old one. */
export const urlRedirects: ReadonlyMap<string, string> = new Map([
  ['/en/old-canon-ixus', '/en/canon-ixus-160-1'],
  ['/de/alte-canon-ixus', '/de/canon-ixus-160-1'],
  ['/en/elsewhere', '/en/nowhere'],
]);

export const stores = [
  { id: 'DE', country: 'Germany' },
  { id: 'AT', country: 'Austria' },
];
