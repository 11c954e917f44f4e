import type { Address } from '../entities.ts';
import { addressIds, leavingCustomerReference } from './ids.ts';

export type SeedCustomer = {
  readonly reference: string;
  readonly email: string;
  readonly salutation: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly gender: string;
  readonly dateOfBirth: string;
  readonly addresses: readonly Address[];
};

const munich = {
  salutation: 'Ms',
  firstName: 'Sonia',
  lastName: 'Wagner',
  address3: null,
  company: null,
  city: 'Munich',
  zipCode: '80331',
  iso2Code: 'DE',
  phone: '+49 89 555 0100',
  isDefaultShipping: false,
  isDefaultBilling: false,
};

/** All of them sign in with `seedPassword`. */
export const seedCustomers: readonly SeedCustomer[] = [
  {
    reference: 'DE--21',
    email: 'sonia@shop.example',
    salutation: 'Ms',
    firstName: 'Sonia',
    lastName: 'Wagner',
    gender: 'Female',
    dateOfBirth: '1984-02-11',
    addresses: [
      { ...munich, id: addressIds.home, address1: 'Kirchner Str.', address2: '7', isDefaultShipping: true },
      { ...munich, id: addressIds.office, address1: 'Hafenweg', address2: '12', isDefaultBilling: true },
      {
        ...munich,
        id: addressIds.summerHouse,
        address1: 'Seestr.',
        address2: '3a',
        city: 'Starnberg',
        zipCode: '82319',
      },
    ],
  },
  {
    reference: 'DE--22',
    email: 'karl@shop.example',
    salutation: 'Mr',
    firstName: 'Karl',
    lastName: 'Brandt',
    gender: 'Male',
    dateOfBirth: '1979-07-30',
    addresses: [],
  },
  {
    reference: 'DE--23',
    email: 'nora@shop.example',
    salutation: 'Ms',
    firstName: 'Nora',
    lastName: 'Lind',
    gender: 'Female',
    dateOfBirth: '1991-11-05',
    addresses: [],
  },
  {
    reference: 'DE--5',
    email: 'spencor@shop.example',
    salutation: 'Mr',
    firstName: 'Spencor',
    lastName: 'Hopkin',
    gender: 'Male',
    dateOfBirth: '1970-01-19',
    addresses: [],
  },
  {
    reference: leavingCustomerReference,
    email: 'leaving@shop.example',
    salutation: 'Dr',
    firstName: 'Lea',
    lastName: 'Ving',
    gender: 'Female',
    dateOfBirth: '1988-08-08',
    addresses: [],
  },
];
