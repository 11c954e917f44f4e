import * as company from '../data/companies.ts';
import { type Address, type Customer, makeAddress, makeCustomer, nextNumber } from '../data/seeds.ts';
import { type Refusal, refuse } from '../http/refusals.ts';
import { noContent, type ResourceCall, type ResourceRoute } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { each, fixed, hidden, type Row, required, settable, shown, Table } from '../http/table.ts';
import { hashPassword, isPasswordOf } from '../tokens.ts';

const customers = new Table<Customer>({
  type: 'customers',
  methods: ['GET', 'POST', 'PATCH', 'DELETE'],
  rows: (call) => call.state.customers,
  /** Another customer's data is forbidden, not missing. */
  parentOf: (call) => {
    if (call.id && call.id !== 'mine') ownCustomer(call, call.id);
    return undefined;
  },
  mine: () => true,
  fields: {
    ...each(required(rule.text), 'firstName', 'lastName'),
    email: required(rule.email),
    salutation: settable(rule.text),
    password: hidden(rule.password),
    confirmPassword: hidden(rule.text),
  },
  make: ({ state, attributes }) => {
    if (attributes.acceptedTerms !== true) refuse('termsRefused');
    if (attributes.password !== attributes.confirmPassword) refuse('passwordsDiffer');
    const owner = `DE--${nextNumber(state)}`;
    return makeCustomer(owner, { owner, passwordHash: hashPassword(String(attributes.password)) });
  },
  check: ({ state, attributes }, customer) => {
    const email = rule.readText(attributes, 'email', customer.email).toLowerCase();
    const isTaken = state.customers.some((each) => each !== customer && each.email.toLowerCase() === email);
    if (isTaken) refuse('customerExists');
  },
  after: ({ state }, customer) => {
    // Anonymised: orders stay, but no longer name a person.
    if (state.customers.includes(customer)) return;
    state.carts = state.carts.filter((cart) => cart.owner !== customer.id);
  },
});

/** The caller's own addresses. */
const addresses = new Table<Address, Customer>({
  type: 'addresses',
  parent: 'customers',
  parentOf: ownCustomer,
  methods: ['GET', 'POST', 'PATCH', 'DELETE'],
  rows: (_, customer) => customer.addresses,
  missing: 'addressNotFound',
  fields: {
    ...each(fixed(rule.text), 'salutation', 'firstName', 'lastName', 'address1', 'address2', 'iso2Code'),
    ...each(required(rule.text), 'zipCode', 'city'),
    ...each(settable(rule.boolean), 'isDefaultShipping', 'isDefaultBilling'),
  },
  make: (_, id) => makeAddress(id),
  /** Only one address is the default of its kind. */
  after: (_, address, customer) => {
    for (const other of customer.addresses.filter((each) => each !== address)) {
      if (address.isDefaultShipping) other.isDefaultShipping = false;
      if (address.isDefaultBilling) other.isDefaultBilling = false;
    }
  },
});

const password = { password: rule.text, newPassword: rule.password, confirmPassword: rule.text };

export const customerRoutes: readonly ResourceRoute[] = [
  customers.route,
  addresses.route,
  { type: 'customer-password', methods: { PATCH: { attributes: password, handle: changePassword } } },
  ofCompany('companies', 'companyNotFound', company.companies),
  ofCompany('company-business-units', 'businessUnitNotFound', company.businessUnits),
  ofCompany('company-business-unit-addresses', 'businessUnitAddressNotFound', company.businessUnitAddresses),
  ofCompany('company-roles', 'companyRoleNotFound', company.companyRoles),
  ofCompany('company-users', 'companyUserNotFound', company.companyUsers),
];

/** Only the users of a company see its data. `mine` selects the whole collection; of users, only the caller. */
function ofCompany<T extends Row & { readonly companyId: string; readonly customer?: string }>(
  type: string,
  missing: Refusal,
  rows: readonly T[],
): ResourceRoute {
  return new Table<T>({
    ...{ type, methods: ['GET'], rows: () => rows, missing, fields: { name: shown } },
    sees: ({ user }, { companyId }) =>
      company.companyUsers.some((each) => each.customer === user.reference && each.companyId === companyId),
    mine: ({ user }, { customer = user.reference }) => customer === user.reference,
  }).route;
}

export function callerOf({ state, user }: ResourceCall): Customer {
  return state.customers.find(({ id }) => id === user.reference) ?? refuse('customerNotFound');
}

/** The customer of a path, who must be the caller. */
function ownCustomer(call: ResourceCall, reference: string | null | undefined): Customer {
  return reference === call.user.reference ? callerOf(call) : refuse('customerForbidden');
}

/** Refuses orders and carts below another customer's reference. */
export function checkOrders(call: ResourceCall, reference: string | undefined): undefined {
  if (reference !== call.user.reference) refuse('ordersForbidden');
}

function changePassword(call: ResourceCall) {
  const customer = ownCustomer(call, call.id);
  const newPassword = rule.readText(call.attributes, 'newPassword');
  if (newPassword !== call.attributes.confirmPassword) refuse('passwordsDiffer');
  if (!isPasswordOf(rule.readText(call.attributes, 'password'), customer.passwordHash))
    refuse('passwordWrong');
  customer.passwordHash = hashPassword(newPassword);
  return noContent;
}
