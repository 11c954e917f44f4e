import type { Customer } from '../entities.ts';
import { isEmail, isPassword, isText, optional, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  customerOf,
  noContent,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { nextNumber, shopTime } from '../state.ts';
import { hashPassword, isPasswordOf } from '../tokens/passwords.ts';

export const customerRoutes: readonly ResourceRoute[] = [
  {
    type: 'customers',
    methods: {
      GET: { handle: readCustomer },
      POST: {
        attributes: {
          firstName: isText,
          lastName: isText,
          email: isEmail,
          password: isPassword,
          confirmPassword: isText,
        },
        handle: register,
      },
      PATCH: {
        attributes: { firstName: optional(isText), lastName: optional(isText), email: optional(isEmail) },
        handle: updateCustomer,
      },
      DELETE: { handle: anonymize },
    },
  },
  {
    type: 'customer-password',
    methods: {
      PATCH: {
        attributes: { password: isText, newPassword: isPassword, confirmPassword: isText },
        handle: changePassword,
      },
    },
  },
];

/** The customer of a path: only the caller's own. */
export function ownCustomer(call: ResourceCall, reference: string | null | undefined): Customer {
  if (reference !== call.user.reference) refuse('customerForbidden');
  return customerOf(call);
}

function readCustomer(call: ResourceCall) {
  if (!call.id || call.id === 'mine') return answerMany([showCustomer(customerOf(call))]);
  return answerOne(showCustomer(ownCustomer(call, call.id)));
}

function register(call: ResourceCall) {
  const { attributes } = call;
  if (attributes.acceptedTerms !== true) refuse('termsRefused');
  if (attributes.password !== attributes.confirmPassword) refuse('passwordsDiffer');
  checkEmailIsFree(call, textOf(attributes, 'email'));
  const idCustomer = nextNumber(call.state);
  const now = shopTime();
  const customer: Customer = {
    reference: `DE--${idCustomer}`,
    idCustomer,
    email: textOf(attributes, 'email'),
    passwordHash: hashPassword(textOf(attributes, 'password')),
    salutation: textOf(attributes, 'salutation', 'Ms'),
    firstName: textOf(attributes, 'firstName'),
    lastName: textOf(attributes, 'lastName'),
    gender: textOf(attributes, 'gender') || null,
    dateOfBirth: textOf(attributes, 'dateOfBirth') || null,
    createdAt: now,
    updatedAt: now,
    anonymized: false,
    addresses: [],
  };
  call.state.customers.set(customer.reference, customer);
  return answerOne(showCustomer(customer), 201);
}

function updateCustomer(call: ResourceCall) {
  const customer = ownCustomer(call, call.id);
  const { attributes } = call;
  const email = textOf(attributes, 'email', customer.email);
  if (email !== customer.email) checkEmailIsFree(call, email);
  customer.email = email;
  customer.salutation = textOf(attributes, 'salutation', customer.salutation);
  customer.firstName = textOf(attributes, 'firstName', customer.firstName);
  customer.lastName = textOf(attributes, 'lastName', customer.lastName);
  customer.gender = textOf(attributes, 'gender') || customer.gender;
  customer.dateOfBirth = textOf(attributes, 'dateOfBirth') || customer.dateOfBirth;
  customer.updatedAt = shopTime();
  return answerOne(showCustomer(customer));
}

/** Orders stay; nothing in them names a person any more, and nobody can sign in as this customer. */
function anonymize(call: ResourceCall) {
  const customer = ownCustomer(call, call.id);
  customer.anonymized = true;
  customer.email = `${customer.idCustomer}@anonymized.invalid`;
  customer.firstName = '';
  customer.lastName = '';
  customer.gender = null;
  customer.dateOfBirth = null;
  customer.passwordHash = '';
  customer.addresses = [];
  customer.updatedAt = shopTime();
  for (const cart of call.state.carts.values()) {
    if (cart.owner === customer.reference) call.state.carts.delete(cart.id);
  }
  return noContent;
}

function changePassword(call: ResourceCall) {
  const customer = ownCustomer(call, call.id);
  const newPassword = textOf(call.attributes, 'newPassword');
  if (newPassword !== call.attributes.confirmPassword) refuse('passwordsDiffer');
  if (!isPasswordOf(textOf(call.attributes, 'password'), customer.passwordHash)) refuse('passwordWrong');
  customer.passwordHash = hashPassword(newPassword);
  return noContent;
}

function checkEmailIsFree(call: ResourceCall, email: string): void {
  const wanted = email.toLowerCase();
  for (const customer of call.state.customers.values()) {
    if (customer.email.toLowerCase() === wanted) refuse('customerExists');
  }
}

export function showCustomer(customer: Customer): Resource {
  const { reference, email, salutation, firstName, lastName, gender, dateOfBirth, createdAt, updatedAt } =
    customer;
  const attributes = { firstName, lastName, email, gender, dateOfBirth, salutation, createdAt, updatedAt };
  return { type: 'customers', id: reference, attributes };
}
