import * as ids from './ids.ts';

/** Two companies; only their own users see their data. */
const { harbourHotel: hotel, cityPrint: print } = ids.companyIds;
const { businessUnitIds: units, businessUnitAddressIds: addresses, companyRoleIds: roles } = ids;

function row(id: string, companyId: string, name: string) {
  return { id, companyId, name };
}

export const companies = [row(hotel, hotel, 'Harbour Hotel GmbH'), row(print, print, 'City Print AG')];
export const businessUnits = [row(units.reception, hotel, 'Reception'), row(units.press, print, 'Press')];
export const businessUnitAddresses = [
  row(addresses.reception, hotel, 'Hafenweg 12'),
  row(addresses.cellar, hotel, 'Hafenweg 12, cellar'),
  row(addresses.press, print, 'Am Markt 1'),
];
export const companyRoles = [
  row(roles.admin, hotel, 'Admin'),
  row(roles.buyer, hotel, 'Buyer'),
  row(roles.foreign, print, 'Admin'),
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
