import * as ids from './ids.ts';

/** Everything of a company is seen by its own users only. There are two of them. */
const { harbourHotel: hotel, cityPrint: print } = ids.companyIds;

type CompanyRow = { readonly id: string; readonly companyId: string; readonly name: string };

export const companies: readonly CompanyRow[] = [
  { id: hotel, companyId: hotel, name: 'Harbour Hotel GmbH' },
  { id: print, companyId: print, name: 'City Print AG' },
];

export const businessUnits: readonly CompanyRow[] = [
  { id: ids.businessUnitIds.reception, companyId: hotel, name: 'Reception' },
  { id: ids.businessUnitIds.press, companyId: print, name: 'Press' },
];

export const businessUnitAddresses: readonly CompanyRow[] = [
  { id: ids.businessUnitAddressIds.reception, companyId: hotel, name: 'Hafenweg 12' },
  { id: ids.businessUnitAddressIds.cellar, companyId: hotel, name: 'Hafenweg 12, cellar' },
  { id: ids.businessUnitAddressIds.press, companyId: print, name: 'Am Markt 1' },
];

export const companyRoles: readonly CompanyRow[] = [
  { id: ids.companyRoleIds.admin, companyId: hotel, name: 'Admin' },
  { id: ids.companyRoleIds.buyer, companyId: hotel, name: 'Buyer' },
  { id: ids.companyRoleIds.foreign, companyId: print, name: 'Admin' },
];

export const companyUsers = [
  { id: ids.companyUserIds.sonia, companyId: hotel, customer: 'DE--21' },
  { id: ids.companyUserIds.karl, companyId: hotel, customer: 'DE--22' },
  { id: ids.companyUserIds.nora, companyId: hotel, customer: 'DE--23' },
  { id: ids.companyUserIds.spencor, companyId: print, customer: 'DE--5' },
];

export const readOnlyGroup = 1;
export const cartPermissionGroups = [
  { id: String(readOnlyGroup), name: 'READ_ONLY', isDefault: true },
  { id: '2', name: 'FULL_ACCESS', isDefault: false },
];
