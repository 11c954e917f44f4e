import { findProduct } from '../data/catalogue.ts';
import { merchants } from '../data/pages.ts';
import type { Product } from '../data/products.ts';
import {
  type Action,
  type Answer,
  answerMany,
  answerOne,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import {
  concreteOf,
  findMerchant,
  pricesOf,
  productOf,
  showConcrete,
  showMerchant,
  showProduct,
} from './product-views.ts';

/** The catalogue: public, read only. */
export const productRoutes: readonly ResourceRoute[] = [
  {
    type: 'abstract-products',
    methods: read((call) => answerOne(showProduct(call, productOf(call.id).sku))),
  },
  {
    type: 'concrete-products',
    methods: read((call) => answerOne(showConcrete(call, concreteOf(call.id).concrete.sku))),
  },
  ofAbstract('abstract-product-prices', (product, call) => pricesOf(call, product)),
  ofAbstract('abstract-product-availabilities', (product) => {
    const quantity = product.concretes.reduce((total, concrete) => total + concrete.stock, 0);
    return { availability: quantity > 0, quantity: decimal(quantity) };
  }),
  {
    type: 'related-products',
    parent: 'abstract-products',
    methods: read((call) => {
      const { related } = productOf(call.parents.get('abstract-products'));
      return answerMany(related.map((sku) => showProduct(call, sku)));
    }),
  },
  ofConcrete('concrete-product-prices', ({ product }, call) => pricesOf(call, product)),
  ofConcrete('concrete-product-availabilities', ({ concrete: { stock } }) => {
    return { availability: stock > 0, quantity: decimal(stock), isNeverOutOfStock: false };
  }),
  { type: 'merchants', methods: read(readMerchants) },
];

function read(handle: Action['handle']): ResourceRoute['methods'] {
  return { GET: { handle } };
}

/** What a product has exactly once, the shop answers as a collection of one. */
function ofAbstract(type: string, show: (product: Product, call: ResourceCall) => object): ResourceRoute {
  const parent = 'abstract-products';
  const methods = read((call) => {
    const product = productOf(call.parents.get(parent));
    return answerChild(parent, type, product.sku, show(product, call));
  });
  return { type, parent, methods };
}

function ofConcrete(
  type: string,
  show: (offer: ReturnType<typeof concreteOf>, call: ResourceCall) => object,
): ResourceRoute {
  const parent = 'concrete-products';
  const methods = read((call) => {
    const offer = concreteOf(call.parents.get(parent));
    return answerChild(parent, type, offer.concrete.sku, show(offer, call));
  });
  return { type, parent, methods };
}

function answerChild(parent: string, type: string, sku: string, attributes: object): Answer {
  return answerMany([{ type, id: sku, self: `/${parent}/${sku}/${type}`, attributes }]);
}

function decimal(quantity: number): string {
  return `${quantity}.0000000000`;
}

function readMerchants(call: ResourceCall): Answer {
  if (!call.id) return answerMany(merchants.map((merchant) => showMerchant(call, merchant)));
  const merchant = findMerchant(call.id);
  if (merchant === undefined) refuse('merchantNotFound');
  return answerOne(showMerchant(call, merchant));
}

export function showConcretesOf(call: ResourceCall, abstractSku: string): Resource[] {
  return (findProduct(abstractSku)?.concretes ?? []).map((concrete) => showConcrete(call, concrete.sku));
}
