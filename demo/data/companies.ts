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

export const businessUnits = [
  {
    id: businessUnitIds.reception,
    companyId: companyIds.harbourHotel,
    name: 'Reception',
    email: 'reception@harbour.example',
  },
  {
    id: businessUnitIds.press,
    companyId: companyIds.cityPrint,
    name: 'Press',
    email: 'press@cityprint.example',
  },
] as const;

export const businessUnitAddresses = [
  {
    id: businessUnitAddressIds.reception,
    companyId: companyIds.harbourHotel,
    address1: 'Hafenweg',
    address2: '12',
    city: 'Munich',
    zipCode: '80331',
    iso2Code: 'DE',
    comment: 'Ring twice.',
    isDefaultBilling: true,
  },
  {
    id: businessUnitAddressIds.cellar,
    companyId: companyIds.harbourHotel,
    address1: 'Hafenweg',
    address2: '12, cellar',
    city: 'Munich',
    zipCode: '80331',
    iso2Code: 'DE',
    comment: '',
    isDefaultBilling: false,
  },
  {
    id: businessUnitAddressIds.press,
    companyId: companyIds.cityPrint,
    address1: 'Am Markt',
    address2: '1',
    city: 'Leipzig',
    zipCode: '04109',
    iso2Code: 'DE',
    comment: '',
    isDefaultBilling: true,
  },
] as const;

export const companyRoles = [
  { id: companyRoleIds.admin, companyId: companyIds.harbourHotel, name: 'Admin', isDefault: false },
  { id: companyRoleIds.buyer, companyId: companyIds.harbourHotel, name: 'Buyer', isDefault: true },
  { id: companyRoleIds.foreign, companyId: companyIds.cityPrint, name: 'Admin', isDefault: true },
] as const;

export const companyUsers = [
  {
    id: companyUserIds.sonia,
    companyId: companyIds.harbourHotel,
    customer: 'DE--21',
    isActive: true,
    isDefault: true,
  },
  {
    id: companyUserIds.karl,
    companyId: companyIds.harbourHotel,
    customer: 'DE--22',
    isActive: true,
    isDefault: true,
  },
  {
    id: companyUserIds.nora,
    companyId: companyIds.harbourHotel,
    customer: 'DE--23',
    isActive: true,
    isDefault: true,
  },
  {
    id: companyUserIds.spencor,
    companyId: companyIds.cityPrint,
    customer: 'DE--5',
    isActive: true,
    isDefault: true,
  },
] as const;

export const cartPermissionGroups = [
  { id: 1, name: 'READ_ONLY', isDefault: true },
  { id: 2, name: 'FULL_ACCESS', isDefault: false },
] as const;

export const readOnlyGroup = 1;
