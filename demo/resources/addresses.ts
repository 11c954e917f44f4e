import type { Address, Customer } from '../entities.ts';
import { type Attributes, isBoolean, isText, optional, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  noContent,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId } from '../state.ts';
import { ownCustomer } from './customers.ts';

const flags = { isDefaultShipping: optional(isBoolean), isDefaultBilling: optional(isBoolean) };

export const addressRoutes: readonly ResourceRoute[] = [
  {
    type: 'addresses',
    parent: 'customers',
    methods: {
      GET: { handle: readAddresses },
      POST: {
        attributes: {
          salutation: isText,
          firstName: isText,
          lastName: isText,
          address1: isText,
          address2: isText,
          zipCode: isText,
          city: isText,
          iso2Code: isText,
          ...flags,
        },
        handle: createAddress,
      },
      PATCH: {
        attributes: { city: optional(isText), zipCode: optional(isText), ...flags },
        handle: updateAddress,
      },
      DELETE: { handle: deleteAddress },
    },
  },
];

function readAddresses(call: ResourceCall) {
  const customer = ownCustomer(call, call.parents.get('customers'));
  if (!call.id) return answerMany(customer.addresses.map((address) => showAddress(customer, address)));
  return answerOne(showAddress(customer, findAddress(customer, call.id)));
}

function createAddress(call: ResourceCall) {
  const customer = ownCustomer(call, call.parents.get('customers'));
  const address = applyTo(emptyAddress(), call.attributes);
  customer.addresses.push(address);
  keepOneDefault(customer, address);
  return answerOne(showAddress(customer, address), 201);
}

function updateAddress(call: ResourceCall) {
  const customer = ownCustomer(call, call.parents.get('customers'));
  const address = applyTo(findAddress(customer, call.id), call.attributes);
  keepOneDefault(customer, address);
  return answerOne(showAddress(customer, address));
}

function deleteAddress(call: ResourceCall) {
  const customer = ownCustomer(call, call.parents.get('customers'));
  const address = findAddress(customer, call.id);
  customer.addresses = customer.addresses.filter((each) => each !== address);
  return noContent;
}

function findAddress(customer: Customer, id: string | null): Address {
  const address = customer.addresses.find((each) => each.id === id);
  if (address === undefined) refuse('addressNotFound');
  return address;
}

function emptyAddress(): Address {
  return {
    id: newId(),
    salutation: '',
    firstName: '',
    lastName: '',
    address1: '',
    address2: '',
    address3: null,
    company: null,
    city: '',
    zipCode: '',
    iso2Code: '',
    phone: null,
    isDefaultShipping: false,
    isDefaultBilling: false,
  };
}

/** Takes over whatever the body names and an address has; its id stays. */
function applyTo(address: Address, attributes: Attributes): Address {
  const known = Object.keys(address).filter((name) => name !== 'id' && attributes[name] !== undefined);
  const change = known.map((name) => {
    const isFlag = name === 'isDefaultShipping' || name === 'isDefaultBilling';
    return [name, isFlag ? attributes[name] === true : textOf(attributes, name)];
  });
  return Object.assign(address, Object.fromEntries(change));
}

function keepOneDefault(customer: Customer, changed: Address): void {
  for (const address of customer.addresses) {
    if (address === changed) continue;
    if (changed.isDefaultShipping) address.isDefaultShipping = false;
    if (changed.isDefaultBilling) address.isDefaultBilling = false;
  }
}

function showAddress(customer: Customer, { id, ...attributes }: Address): Resource {
  return { type: 'addresses', id, self: `/customers/${customer.reference}/addresses/${id}`, attributes };
}
