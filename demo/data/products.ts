import type { PriceMode } from './seeds.ts';

export type Locale = 'en' | 'de';
export type Localized = Readonly<Record<Locale, string>>;

/** Concrete sku -> what tells it from its sisters, and how many there are. */
type OfferRows = Readonly<Record<string, readonly [variant: string, stock: number]>>;

/** `grossPrice` in euro cents; related products are to be looked at besides, up-selling ones are dearer. */
function product(
  slug: string,
  [en, de = en]: readonly [en: string, de?: string],
  [merchantReference, grossPrice, taxRate = 19]: readonly [merchant: string, price: number, taxRate?: number],
  [related, upSelling]: readonly [related: readonly string[], upSelling: readonly string[]],
  rows: OfferRows,
) {
  const [sku = ''] = Object.keys(rows).map((concreteSku) => concreteSku.slice(0, 3));
  return { sku, slug, name: { en, de }, merchantReference, grossPrice, taxRate, related, upSelling, rows };
}

export type Product = ReturnType<typeof product>;

const [general, cameras, office] = ['MER000001', 'MER000005', 'MER000006'] as const;

export const products: readonly Product[] = [
  product('canon-ixus-160-1', ['Canon IXUS 160'], [cameras, 9999], [['005', '020'], ['020']], {
    '001_25904006': ['silver', 20],
  }),
  product('canon-ixus-175-5', ['Canon IXUS 175'], [cameras, 11900], [['001'], ['020']], {
    '005_30663301': ['red', 10],
    '005_30663302': ['blue', 0],
  }),
  product(
    'sony-cyber-shot-dsc-rx100-20',
    ['Sony Cyber-shot DSC-RX100'],
    [cameras, 39900],
    [['001', '005'], ['199']],
    {
      '020_21081478': ['black', 8],
    },
  ),
  product('panasonic-hc-v380-199', ['Panasonic HC-V380'], [general, 27900], [['020'], []], {
    '199_7016823': ['', 5],
  }),
  product('acer-aspire-s7-134', ['Acer Aspire S7'], [general, 145000], [['087'], ['087']], {
    '134_29759322': ['128 GB', 6],
    '134_26145012': ['256 GB', 3],
  }),
  product('lenovo-thinkstation-p300-87', ['Lenovo ThinkStation P300'], [general, 189900], [['134'], []], {
    '087_20344652': ['', 4],
  }),
  product(
    'acer-iconia-155',
    ['Acer Iconia tablet', 'Acer Iconia Tablet'],
    [general, 21900],
    [['134'], ['134']],
    {
      '155_30149933': ['', 12],
    },
  ),
  product('desk-stapler-209', ['Desk stapler', 'Tischhefter'], [office, 1290], [['218'], ['218']], {
    '209_12554247': ['', 200],
  }),
  product('copy-paper-a4-218', ['Copy paper A4', 'Kopierpapier A4'], [office, 549], [['209'], []], {
    '218_1233': ['', 1000],
  }),
  product(
    'harbours-of-the-north-301',
    ['Harbours of the north, a picture book', 'Häfen des Nordens, ein Bildband'],
    [office, 3900, 7],
    [[], ['001']],
    { '301_4711': ['', 30] },
  ),
];

/** A concrete product: what can be put into a cart. */
export type Offer = ReturnType<typeof offersOf>[number];

export function offersOf(product: Product) {
  return Object.entries(product.rows).map(([sku, [variant, stock]]) => {
    return { sku, name: `${product.name.en} ${variant}`.trim(), stock, product };
  });
}

export function findProduct(sku: string): Product | undefined {
  return products.find((product) => product.sku === sku);
}

const offers = new Map(products.flatMap(offersOf).map((offer) => [offer.sku, offer]));

export function findOffer(concreteSku: string): Offer | undefined {
  return offers.get(concreteSku);
}

export function urlOf(product: Product, locale: Locale): string {
  return `/${locale}/${product.slug}`;
}

const swissPercent = 115;
export const currencies: readonly string[] = ['EUR', 'CHF'];

/** Price of one piece in cents of the currency, with tax in gross mode and without it in net mode. */
export function unitPriceOf({ grossPrice, taxRate }: Product, currency: string, mode: PriceMode): number {
  const gross = currency === 'CHF' ? Math.round((grossPrice * swissPercent) / 100) : grossPrice;
  return mode === 'GROSS_MODE' ? gross : Math.round((gross * 100) / (100 + taxRate));
}

export const merchants = [
  { id: general, name: 'Spryker', slug: 'spryker' },
  { id: cameras, name: 'Budget Cameras', slug: 'budget-cameras' },
  { id: office, name: 'Office King', slug: 'office-king' },
];
