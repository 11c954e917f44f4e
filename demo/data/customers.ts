import type { Address } from '../entities.ts';
import { addressIds, leavingCustomerReference } from './ids.ts';

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

function person(reference: string, email: string, salutation: string, name: string, born: string) {
  const [firstName = '', lastName = ''] = name.split(' ');
  const gender = salutation === 'Mr' ? 'Male' : 'Female';
  return {
    reference,
    email,
    salutation,
    firstName,
    lastName,
    gender,
    dateOfBirth: born,
    addresses: [] as Address[],
  };
}

const home = { address1: 'Kirchner Str.', address2: '7', isDefaultShipping: true };
const office = { address1: 'Hafenweg', address2: '12', isDefaultBilling: true };
const summerHouse = { address1: 'Seestr.', address2: '3a', city: 'Starnberg', zipCode: '82319' };

/** All of them sign in with `seedPassword`. */
export const seedCustomers: readonly (ReturnType<typeof person> & {
  readonly addresses: readonly Address[];
})[] = [
  {
    ...person('DE--21', 'sonia@shop.example', 'Ms', 'Sonia Wagner', '1984-02-11'),
    addresses: [
      { ...munich, id: addressIds.home, ...home },
      { ...munich, id: addressIds.office, ...office },
      { ...munich, id: addressIds.summerHouse, ...summerHouse },
    ],
  },
  person('DE--22', 'karl@shop.example', 'Mr', 'Karl Brandt', '1979-07-30'),
  person('DE--23', 'nora@shop.example', 'Ms', 'Nora Lind', '1991-11-05'),
  person('DE--5', 'spencor@shop.example', 'Mr', 'Spencor Hopkin', '1970-01-19'),
  person(leavingCustomerReference, 'leaving@shop.example', 'Dr', 'Lea Ving', '1988-08-08'),
];
