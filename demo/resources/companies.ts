import {
  businessUnitAddresses,
  businessUnits,
  companies,
  companyRoles,
  companyUsers,
} from '../data/companies.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { type Refusal, refuse } from '../http/shop-error.ts';

type CompanyRecord = { readonly id: string; readonly companyId: string };

/** Everything of a company is seen by its own users only; `mine` and no id give the collection. */
export const companyRoutes: readonly ResourceRoute[] = [
  read(
    'companies',
    'companyNotFound',
    companies.map((company) => ({ ...company, companyId: company.id })),
    ({ name, status, isActive }) => ({ name, status, isActive }),
  ),
  read('company-business-units', 'businessUnitNotFound', businessUnits, ({ name, email }) => ({
    name,
    email,
  })),
  read('company-business-unit-addresses', 'businessUnitAddressNotFound', businessUnitAddresses, (address) => {
    const { id, companyId, ...attributes } = address;
    return attributes;
  }),
  read('company-roles', 'companyRoleNotFound', companyRoles, ({ name, isDefault }) => ({ name, isDefault })),
  { type: 'company-users', methods: { GET: { handle: readCompanyUsers } } },
];

function read<T extends CompanyRecord>(
  type: string,
  missing: Refusal,
  records: readonly T[],
  show: (record: T) => object,
): ResourceRoute {
  const resourceOf = (record: T): Resource => ({ type, id: record.id, attributes: show(record) });
  return {
    type,
    methods: {
      GET: {
        handle: (call) => {
          const own = records.filter((record) => companyIdsOf(call).includes(record.companyId));
          if (!call.id || call.id === 'mine') return answerMany(own.map(resourceOf));
          const record = own.find((each) => each.id === call.id);
          if (record === undefined) refuse(missing);
          return answerOne(resourceOf(record));
        },
      },
    },
  };
}

/** Without an id the colleagues too, as `mine` only oneself. */
function readCompanyUsers(call: ResourceCall) {
  const colleagues = companyUsers.filter((user) => companyIdsOf(call).includes(user.companyId));
  if (call.id === 'mine')
    return answerMany(colleagues.filter(({ customer }) => customer === call.user.reference).map(showUser));
  if (!call.id) return answerMany(colleagues.map(showUser));
  const user = colleagues.find((each) => each.id === call.id);
  if (user === undefined) refuse('companyUserNotFound');
  return answerOne(showUser(user));
}

function showUser({ id, isActive, isDefault }: (typeof companyUsers)[number]): Resource {
  return { type: 'company-users', id, attributes: { isActive, isDefault } };
}

function companyIdsOf(call: ResourceCall): string[] {
  return companyUsers.filter((user) => user.customer === call.user.reference).map((user) => user.companyId);
}
