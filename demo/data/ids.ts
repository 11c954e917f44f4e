/** Identifiers of seeded records that tours and tests refer to. */

export const defaultCustomerReference = 'DE--21';
/** A customer for the request that anonymises; nothing else uses her. */
export const leavingCustomerReference = 'DE--30';
export const seedPassword = 'change123';

export const addressIds = uuids('5e0b1c52-6d2c-5f0f-9a39-0b1f6a4fd1', 'home office summerHouse');
/** The last one belongs to DE--22. */
export const cartIds = uuids(
  '61ab15e9-e24a-5dec-a1ef-fc333bd88b',
  'everyday office celebration forgotten foreign',
);
export const sharedCartIds = uuids('4c677a6b-2f65-5645-9bf8-0ef3532b00', 'withKarl withNora');
export const wishlistIds = uuids('09264b7f-1894-58ed-81f4-d52d683e91', 'cameras someday outdated');
export const shoppingListIds = uuids('ecdb5c3b-8bba-5a97-8e7b-c0a5a8f8a2', 'weekly desk outdated');
export const shoppingListItemIds = uuids('946451b4-1b24-5c0c-a3a5-f1c0e7dba3', 'paper notebook stapler');
export const orderIds = { delivered: 'DE--1001', shipped: 'DE--1002', foreign: 'DE--1003' } as const;
export const orderItemIds = uuids(
  'b39c7e1c-12ba-53d3-8d81-5c363d5307e',
  'camera stapler paper returned foreign',
);
export const returnIds = { seeded: 'DE--21-R1' } as const;
export const companyIds = uuids('88efe8fb-98bd-5423-a041-a8f866c0f9', 'harbourHotel cityPrint');
export const businessUnitIds = uuids('e02b3c8a-6f5d-51e9-9d8f-1a2b3c4d00', 'reception press');
export const businessUnitAddressIds = uuids('eec036ee-b999-5753-a7dd-8b2e5d8e00', 'reception cellar press');
export const companyRoleIds = uuids('2f0a9d3e-9e69-53eb-8518-284a0db0e0', 'admin buyer foreign');
export const companyUserIds = uuids('4c677a6b-2f65-5645-9bf8-0ef3532be0', 'sonia karl nora spencor');

type Words<S extends string> = S extends `${infer First} ${infer Rest}` ? First | Words<Rest> : S;

/** UUIDs that count from 1 in the last digits, one for each name. */
function uuids<S extends string>(prefix: string, names: S): Readonly<Record<Words<S>, string>> {
  const ids = names.split(' ').map((name, at) => {
    return [name, prefix + String(at + 1).padStart(36 - prefix.length, '0')];
  });
  return Object.fromEntries(ids) as Record<Words<S>, string>;
}
