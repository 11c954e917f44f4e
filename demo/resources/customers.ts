import type { Address, Customer } from '../entities.ts';
import { collection, pick } from '../http/collection.ts';
import { refuse } from '../http/refusals.ts';
import {
  type Attributes,
  customerOf,
  isBoolean,
  isEmail,
  isPassword,
  isText,
  noContent,
  optional,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { newId, nextNumber, shopTime } from '../state.ts';
import { hashPassword, isPasswordOf } from '../tokens.ts';

const flags = { isDefaultShipping: optional(isBoolean), isDefaultBilling: optional(isBoolean) };
const person = { firstName: isText, lastName: isText };
const place = { address1: isText, address2: isText, zipCode: isText, city: isText, iso2Code: isText };

export const customerRoutes: readonly ResourceRoute[] = [
  collection<Customer>({
    type: 'customers',
    records: (call) => [customerOf(call)],
    find: ownCustomer,
    mine: () => true,
    show: showCustomer,
    create: {
      attributes: { ...person, email: isEmail, password: isPassword, confirmPassword: isText },
      run: register,
    },
    change: {
      attributes: { firstName: optional(isText), lastName: optional(isText), email: optional(isEmail) },
      run: updateCustomer,
    },
    remove: anonymize,
  }),
  {
    type: 'customer-password',
    methods: {
      PATCH: {
        attributes: { password: isText, newPassword: isPassword, confirmPassword: isText },
        handle: changePassword,
      },
    },
  },
  collection<Address, Customer>({
    type: 'addresses',
    parent: 'customers',
    parentOf: ownCustomer,
    records: (_, customer) => customer.addresses,
    missing: 'addressNotFound',
    show: (_, { id, ...attributes }, { reference }) => {
      return { type: 'addresses', id, self: `/customers/${reference}/addresses/${id}`, attributes };
    },
    create: {
      attributes: { salutation: isText, ...person, ...place, ...flags },
      run: (call, customer) => {
        const address = { id: newId(), ...emptyAddress };
        customer.addresses.push(address);
        changeAddress(call, address, customer);
        return address;
      },
    },
    change: {
      attributes: { city: optional(isText), zipCode: optional(isText), ...flags },
      run: changeAddress,
    },
    remove: (_, address, customer) => {
      customer.addresses = customer.addresses.filter((each) => each !== address);
    },
  }),
];

/** The customer of a path: only the caller's own. */
function ownCustomer(call: ResourceCall, reference: string | null | undefined): Customer {
  if (reference !== call.user.reference) refuse('customerForbidden');
  return customerOf(call);
}

function register(call: ResourceCall): Customer {
  const { attributes } = call;
  if (attributes.acceptedTerms !== true) refuse('termsRefused');
  if (attributes.password !== attributes.confirmPassword) refuse('passwordsDiffer');
  const email = textOf(attributes, 'email');
  checkEmailIsFree(call, email);
  const idCustomer = nextNumber(call.state);
  const customer: Customer = {
    reference: `DE--${idCustomer}`,
    idCustomer,
    email,
    passwordHash: hashPassword(textOf(attributes, 'password')),
    ...{ salutation: 'Ms', firstName: '', lastName: '', gender: null, dateOfBirth: null },
    ...{ createdAt: shopTime(), updatedAt: '', anonymized: false, addresses: [] },
  };
  applyTo(customer, attributes);
  call.state.customers.set(customer.reference, customer);
  return customer;
}

function updateCustomer(call: ResourceCall, customer: Customer): void {
  const email = textOf(call.attributes, 'email', customer.email);
  if (email !== customer.email) checkEmailIsFree(call, email);
  customer.email = email;
  applyTo(customer, call.attributes);
}

function applyTo(customer: Customer, attributes: Attributes): void {
  for (const name of ['salutation', 'firstName', 'lastName'] as const) {
    customer[name] = textOf(attributes, name, customer[name]);
  }
  customer.gender = textOf(attributes, 'gender') || customer.gender;
  customer.dateOfBirth = textOf(attributes, 'dateOfBirth') || customer.dateOfBirth;
  customer.updatedAt = shopTime();
}

/** Orders stay; nothing in them names a person any more, and nobody can sign in as this customer. */
function anonymize({ state }: ResourceCall, customer: Customer): void {
  const nobody = { firstName: '', lastName: '', gender: null, dateOfBirth: null, passwordHash: '' };
  const email = `${customer.idCustomer}@anonymized.invalid`;
  Object.assign(customer, nobody, { anonymized: true, email, addresses: [], updatedAt: shopTime() });
  for (const cart of state.carts.values()) {
    if (cart.owner === customer.reference) state.carts.delete(cart.id);
  }
}

function changePassword(call: ResourceCall) {
  const customer = ownCustomer(call, call.id);
  const newPassword = textOf(call.attributes, 'newPassword');
  if (newPassword !== call.attributes.confirmPassword) refuse('passwordsDiffer');
  if (!isPasswordOf(textOf(call.attributes, 'password'), customer.passwordHash)) refuse('passwordWrong');
  customer.passwordHash = hashPassword(newPassword);
  return noContent;
}

function checkEmailIsFree({ state }: ResourceCall, email: string): void {
  const taken = [...state.customers.values()].map((customer) => customer.email.toLowerCase());
  if (taken.includes(email.toLowerCase())) refuse('customerExists');
}

export function showCustomer(_: ResourceCall, customer: Customer): Resource {
  const named = pick(customer, 'firstName', 'lastName', 'email', 'gender', 'dateOfBirth', 'salutation');
  const attributes = { ...named, ...pick(customer, 'createdAt', 'updatedAt') };
  return { type: 'customers', id: customer.reference, attributes };
}

const noPlace = { address1: '', address2: '', address3: null, company: null, city: '', zipCode: '' };
const emptyAddress = {
  ...{ salutation: '', firstName: '', lastName: '', ...noPlace, iso2Code: '', phone: null },
  ...{ isDefaultShipping: false, isDefaultBilling: false },
};

/** Takes over whatever the body names and an address has; its id stays, and there is one default of a kind. */
function changeAddress({ attributes }: ResourceCall, address: Address, customer: Customer): void {
  const named = Object.keys(address).filter((name) => name !== 'id' && attributes[name] !== undefined);
  const change = named.map((name) => {
    return [name, Object.hasOwn(flags, name) ? attributes[name] === true : textOf(attributes, name)];
  });
  Object.assign(address, Object.fromEntries(change));
  for (const other of customer.addresses) {
    if (other === address) continue;
    if (address.isDefaultShipping) other.isDefaultShipping = false;
    if (address.isDefaultBilling) other.isDefaultBilling = false;
  }
}
