import { stores } from '../data/pages.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';

/** Resource types that a real shop currently restricts to customers: NOT its list of protected routes. */
const restrictedTypes = ['wishlists', 'wishlist-items'];

export const storeRoutes: readonly ResourceRoute[] = [
  { type: 'stores', methods: { GET: { handle: readStores } } },
  {
    type: 'customer-access',
    methods: {
      GET: {
        handle: () =>
          answerMany([{ type: 'customer-access', id: null, attributes: { resourceTypes: restrictedTypes } }]),
      },
    },
  },
];

function readStores(call: ResourceCall) {
  if (!call.id) return answerMany(stores.map(showStore));
  const store = stores.find((each) => each.id === call.id);
  if (store === undefined) refuse('storeNotFound');
  return answerOne(showStore(store));
}

function showStore({
  id,
  defaultCurrency,
  currencies,
  country,
  iso2Code,
  iso3Code,
}: (typeof stores)[number]): Resource {
  return {
    type: 'stores',
    id,
    attributes: {
      timeZone: 'Europe/Berlin',
      defaultCurrency,
      currencies: currencies.map((code) => ({ code, name: code === 'EUR' ? 'Euro' : 'Swiss Franc' })),
      locales: [
        { code: 'en', name: 'en_US' },
        { code: 'de', name: 'de_DE' },
      ],
      countries: [{ iso2Code, iso3Code, name: country, postalCodeMandatory: true, regions: [] }],
    },
  };
}
