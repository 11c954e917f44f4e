/** Identifiers of seeded records that tours and tests refer to. */

export const defaultCustomerReference = 'DE--21';
/** A customer of her own for the request that anonymises: nothing else depends on her. */
export const leavingCustomerReference = 'DE--30';
export const seedPassword = 'change123';

export const addressIds = {
  home: '5e0b1c52-6d2c-5f0f-9a39-0b1f6a4fd101',
  office: '5e0b1c52-6d2c-5f0f-9a39-0b1f6a4fd102',
  summerHouse: '5e0b1c52-6d2c-5f0f-9a39-0b1f6a4fd103',
} as const;

export const cartIds = {
  everyday: '61ab15e9-e24a-5dec-a1ef-fc333bd88b01',
  office: '61ab15e9-e24a-5dec-a1ef-fc333bd88b02',
  celebration: '61ab15e9-e24a-5dec-a1ef-fc333bd88b03',
  forgotten: '61ab15e9-e24a-5dec-a1ef-fc333bd88b04',
  /** Belongs to DE--22. */
  foreign: '61ab15e9-e24a-5dec-a1ef-fc333bd88b05',
} as const;

export const sharedCartIds = {
  withKarl: '4c677a6b-2f65-5645-9bf8-0ef3532b0001',
  withNora: '4c677a6b-2f65-5645-9bf8-0ef3532b0002',
} as const;

export const wishlistIds = {
  cameras: '09264b7f-1894-58ed-81f4-d52d683e9101',
  someday: '09264b7f-1894-58ed-81f4-d52d683e9102',
  outdated: '09264b7f-1894-58ed-81f4-d52d683e9103',
} as const;

export const shoppingListIds = {
  weekly: 'ecdb5c3b-8bba-5a97-8e7b-c0a5a8f8a201',
  desk: 'ecdb5c3b-8bba-5a97-8e7b-c0a5a8f8a202',
  outdated: 'ecdb5c3b-8bba-5a97-8e7b-c0a5a8f8a203',
} as const;

export const shoppingListItemIds = {
  paper: '946451b4-1b24-5c0c-a3a5-f1c0e7dba301',
  notebook: '946451b4-1b24-5c0c-a3a5-f1c0e7dba302',
  stapler: '946451b4-1b24-5c0c-a3a5-f1c0e7dba303',
} as const;

export const orderIds = { delivered: 'DE--1001', shipped: 'DE--1002', foreign: 'DE--1003' } as const;

export const orderItemIds = {
  camera: 'b39c7e1c-12ba-53d3-8d81-5c363d5307e1',
  stapler: 'b39c7e1c-12ba-53d3-8d81-5c363d5307e2',
  paper: 'b39c7e1c-12ba-53d3-8d81-5c363d5307e3',
  returned: 'b39c7e1c-12ba-53d3-8d81-5c363d5307e4',
  foreign: 'b39c7e1c-12ba-53d3-8d81-5c363d5307e5',
} as const;

export const returnIds = { seeded: 'DE--21-R1' } as const;

export const companyIds = {
  harbourHotel: '88efe8fb-98bd-5423-a041-a8f866c0f901',
  cityPrint: '88efe8fb-98bd-5423-a041-a8f866c0f902',
} as const;

export const businessUnitIds = {
  reception: 'e02b3c8a-6f5d-51e9-9d8f-1a2b3c4d0001',
  press: 'e02b3c8a-6f5d-51e9-9d8f-1a2b3c4d0002',
} as const;

export const businessUnitAddressIds = {
  reception: 'eec036ee-b999-5753-a7dd-8b2e5d8e0001',
  cellar: 'eec036ee-b999-5753-a7dd-8b2e5d8e0002',
  press: 'eec036ee-b999-5753-a7dd-8b2e5d8e0003',
} as const;

export const companyRoleIds = {
  admin: '2f0a9d3e-9e69-53eb-8518-284a0db0e001',
  buyer: '2f0a9d3e-9e69-53eb-8518-284a0db0e002',
  foreign: '2f0a9d3e-9e69-53eb-8518-284a0db0e003',
} as const;

export const companyUserIds = {
  sonia: '4c677a6b-2f65-5645-9bf8-0ef3532be001',
  karl: '4c677a6b-2f65-5645-9bf8-0ef3532be002',
  nora: '4c677a6b-2f65-5645-9bf8-0ef3532be003',
  spencor: '4c677a6b-2f65-5645-9bf8-0ef3532be004',
} as const;
