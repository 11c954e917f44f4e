import {
  businessUnitAddressIds,
  businessUnitIds,
  companyIds,
  companyRoleIds,
  companyUserIds,
} from './ids.ts';

export const companies = [
  { id: companyIds.harbourHotel, name: 'Harbour Hotel GmbH', status: 'approved', isActive: true },
  { id: companyIds.cityPrint, name: 'City Print AG', status: 'approved', isActive: true },
] as const;

const companyId = companyIds.harbourHotel;
const otherId = companyIds.cityPrint;

export const businessUnits = [
  { id: businessUnitIds.reception, companyId, name: 'Reception', email: 'reception@harbour.example' },
  { id: businessUnitIds.press, companyId: otherId, name: 'Press', email: 'press@cityprint.example' },
] as const;

const reception = { address1: 'Hafenweg', address2: '12', city: 'Munich', zipCode: '80331', iso2Code: 'DE' };
const press = { address1: 'Am Markt', address2: '1', city: 'Leipzig', zipCode: '04109', iso2Code: 'DE' };
const addresses = businessUnitAddressIds;

export const businessUnitAddresses = [
  { id: addresses.reception, companyId, ...reception, comment: 'Ring twice.', isDefaultBilling: true },
  {
    ...{ id: addresses.cellar, companyId, ...reception, address2: '12, cellar' },
    ...{ comment: '', isDefaultBilling: false },
  },
  { id: addresses.press, companyId: otherId, ...press, comment: '', isDefaultBilling: true },
] as const;

export const companyRoles = [
  { id: companyRoleIds.admin, companyId: companyIds.harbourHotel, name: 'Admin', isDefault: false },
  { id: companyRoleIds.buyer, companyId: companyIds.harbourHotel, name: 'Buyer', isDefault: true },
  { id: companyRoleIds.foreign, companyId: companyIds.cityPrint, name: 'Admin', isDefault: true },
] as const;

const active = { isActive: true, isDefault: true };

export const companyUsers = [
  { id: companyUserIds.sonia, companyId, customer: 'DE--21', ...active },
  { id: companyUserIds.karl, companyId, customer: 'DE--22', ...active },
  { id: companyUserIds.nora, companyId, customer: 'DE--23', ...active },
  { id: companyUserIds.spencor, companyId: otherId, customer: 'DE--5', ...active },
] as const;

export const cartPermissionGroups = [
  { id: 1, name: 'READ_ONLY', isDefault: true },
  { id: 2, name: 'FULL_ACCESS', isDefault: false },
] as const;

export const readOnlyGroup = 1;
