import {
  businessUnitAddresses,
  businessUnits,
  companies,
  companyRoles,
  companyUsers,
} from '../data/companies.ts';
import { type Collection, collection } from '../http/collection.ts';
import type { Refusal } from '../http/refusals.ts';
import type { Resource, ResourceCall, ResourceRoute } from '../http/resource.ts';
import { showCustomer } from './customers.ts';

type CompanyRecord = { readonly id: string; readonly companyId?: string; readonly customer?: string };

/** Everything of a company is seen by its own users only; `mine` gives the collection, of users only oneself. */
export const companyRoutes: readonly ResourceRoute[] = [
  ofCompany('companies', 'companyNotFound', companies),
  ofCompany('company-business-units', 'businessUnitNotFound', businessUnits),
  ofCompany('company-business-unit-addresses', 'businessUnitAddressNotFound', businessUnitAddresses),
  ofCompany('company-roles', 'companyRoleNotFound', companyRoles),
  ofCompany('company-users', 'companyUserNotFound', companyUsers, {
    mine: (call, { customer }) => customer === call.user.reference,
  }),
];

function ofCompany(
  type: string,
  missing: Refusal,
  records: readonly CompanyRecord[],
  rest: Pick<Collection<CompanyRecord, undefined>, 'mine'> = { mine: () => true },
): ResourceRoute {
  const show = (call: ResourceCall, record: CompanyRecord): Resource => {
    const { id, companyId, customer, ...attributes } = record;
    const person = call.state.customers.get(customer ?? '');
    return person === undefined
      ? { type, id, attributes }
      : { type, id, attributes, related: { customers: () => [showCustomer(call, person)] } };
  };
  const visible = (call: ResourceCall) => {
    const own = companyUsers.filter((user) => user.customer === call.user.reference);
    return records.filter((record) => own.some((user) => user.companyId === (record.companyId ?? record.id)));
  };
  return collection<CompanyRecord>({ type, records: visible, missing, show, ...rest });
}
