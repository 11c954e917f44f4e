import type { Locale, Localized, PriceMode } from '../entities.ts';

export type Concrete = {
  readonly sku: string;
  readonly name: string;
  readonly superAttributes: Readonly<Record<string, string>>;
  readonly stock: number;
};

export type Product = {
  readonly sku: string;
  readonly name: Localized;
  readonly description: Localized;
  /** Path after the locale prefix. */
  readonly slug: string;
  readonly merchantReference: string;
  /** Gross price in euro cents. */
  readonly grossPrice: number;
  readonly taxRate: number;
  readonly concretes: readonly Concrete[];
  readonly related: readonly string[];
  readonly upSelling: readonly string[];
};

function concrete(sku: string, name: string, stock: number, superAttributes = {}): Concrete {
  return { sku, name, stock, superAttributes };
}

export const products: readonly Product[] = [
  {
    ...{ sku: '001', slug: 'canon-ixus-160-1', merchantReference: 'MER000005' },
    ...{ grossPrice: 9999, taxRate: 19, related: ['005', '020'], upSelling: ['020'] },
    name: { en: 'Canon IXUS 160', de: 'Canon IXUS 160' },
    description: { en: 'A pocket camera with 20 megapixels.', de: 'Eine Kompaktkamera mit 20 Megapixeln.' },
    concretes: [concrete('001_25904006', 'Canon IXUS 160 silver', 20, { color: 'silver' })],
  },
  {
    ...{ sku: '005', slug: 'canon-ixus-175-5', merchantReference: 'MER000005' },
    ...{ grossPrice: 11900, taxRate: 19, related: ['001'], upSelling: ['020'] },
    name: { en: 'Canon IXUS 175', de: 'Canon IXUS 175' },
    description: { en: 'Twelve times zoom.', de: 'Zwölffacher Zoom.' },
    concretes: [
      concrete('005_30663301', 'Canon IXUS 175 red', 10, { color: 'red' }),
      concrete('005_30663302', 'Canon IXUS 175 blue', 0, { color: 'blue' }),
    ],
  },
  {
    ...{ sku: '020', slug: 'sony-cyber-shot-dsc-rx100-20', merchantReference: 'MER000005' },
    ...{ grossPrice: 39900, taxRate: 19, related: ['001', '005'], upSelling: ['199'] },
    name: { en: 'Sony Cyber-shot DSC-RX100', de: 'Sony Cyber-shot DSC-RX100' },
    description: { en: 'Large sensor, small body.', de: 'Großer Sensor, kleines Gehäuse.' },
    concretes: [concrete('020_21081478', 'Sony Cyber-shot DSC-RX100 black', 8, { color: 'black' })],
  },
  {
    ...{ sku: '199', slug: 'panasonic-hc-v380-199', merchantReference: 'MER000001' },
    ...{ grossPrice: 27900, taxRate: 19, related: ['020'], upSelling: [] },
    name: { en: 'Panasonic HC-V380 camcorder', de: 'Panasonic HC-V380 Camcorder' },
    description: { en: 'Films in full HD.', de: 'Filmt in Full HD.' },
    concretes: [concrete('199_7016823', 'Panasonic HC-V380', 5)],
  },
  {
    ...{ sku: '134', slug: 'acer-aspire-s7-134', merchantReference: 'MER000001' },
    ...{ grossPrice: 145000, taxRate: 19, related: ['087'], upSelling: ['087'] },
    name: { en: 'Acer Aspire S7', de: 'Acer Aspire S7' },
    description: { en: 'A notebook of 13 inches.', de: 'Ein Notebook mit 13 Zoll.' },
    concretes: [
      concrete('134_29759322', 'Acer Aspire S7 128 GB', 6, { storage: '128 GB' }),
      concrete('134_26145012', 'Acer Aspire S7 256 GB', 3, { storage: '256 GB' }),
    ],
  },
  {
    ...{ sku: '087', slug: 'lenovo-thinkstation-p300-87', merchantReference: 'MER000001' },
    ...{ grossPrice: 189900, taxRate: 19, related: ['134'], upSelling: [] },
    name: { en: 'Lenovo ThinkStation P300', de: 'Lenovo ThinkStation P300' },
    description: { en: 'A workstation for drawing offices.', de: 'Eine Workstation für Zeichenbüros.' },
    concretes: [concrete('087_20344652', 'Lenovo ThinkStation P300', 4)],
  },
  {
    ...{ sku: '155', slug: 'acer-iconia-155', merchantReference: 'MER000001' },
    ...{ grossPrice: 21900, taxRate: 19, related: ['134'], upSelling: ['134'] },
    name: { en: 'Acer Iconia tablet', de: 'Acer Iconia Tablet' },
    description: { en: 'Ten inches of glass.', de: 'Zehn Zoll Glas.' },
    concretes: [concrete('155_30149933', 'Acer Iconia', 12)],
  },
  {
    ...{ sku: '209', slug: 'desk-stapler-209', merchantReference: 'MER000006' },
    ...{ grossPrice: 1290, taxRate: 19, related: ['218'], upSelling: ['218'] },
    name: { en: 'Desk stapler', de: 'Tischhefter' },
    description: { en: 'Staples thirty sheets.', de: 'Heftet dreißig Blatt.' },
    concretes: [concrete('209_12554247', 'Desk stapler', 200)],
  },
  {
    ...{ sku: '218', slug: 'copy-paper-a4-218', merchantReference: 'MER000006' },
    ...{ grossPrice: 549, taxRate: 19, related: ['209'], upSelling: [] },
    name: { en: 'Copy paper A4', de: 'Kopierpapier A4' },
    description: { en: 'Five hundred sheets.', de: 'Fünfhundert Blatt.' },
    concretes: [concrete('218_1233', 'Copy paper A4, 500 sheets', 1000)],
  },
  {
    ...{ sku: '301', slug: 'harbours-of-the-north-301', merchantReference: 'MER000006' },
    ...{ grossPrice: 3900, taxRate: 7, related: [], upSelling: ['001'] },
    name: { en: 'Harbours of the north, a picture book', de: 'Häfen des Nordens, ein Bildband' },
    description: { en: 'Printed on heavy paper.', de: 'Auf schwerem Papier gedruckt.' },
    concretes: [concrete('301_4711', 'Harbours of the north', 30)],
  },
];

export type Offer = { readonly product: Product; readonly concrete: Concrete };

const bySku = new Map(products.map((product) => [product.sku, product]));
const offers = new Map<string, Offer>(
  products.flatMap((product) =>
    product.concretes.map((concrete) => [concrete.sku, { product, concrete }] as const),
  ),
);

const swissPercent = 115;
export const currencies: readonly string[] = ['EUR', 'CHF'];

export function findProduct(sku: string): Product | undefined {
  return bySku.get(sku);
}

export function findOffer(concreteSku: string): Offer | undefined {
  return offers.get(concreteSku);
}

export function urlOf(product: Product, locale: Locale): string {
  return `/${locale}/${product.slug}`;
}

/** Price of one piece in cents of the currency, with tax in gross mode and without it in net mode. */
export function unitPriceOf(product: Product, currency: string, mode: PriceMode): number {
  const gross =
    currency === 'CHF' ? Math.round((product.grossPrice * swissPercent) / 100) : product.grossPrice;
  return mode === 'GROSS_MODE' ? gross : Math.round((gross * 100) / (100 + product.taxRate));
}
