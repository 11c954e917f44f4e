import type { OutageGroup } from './outage.ts';
import { networkOutages } from './network-outages.ts';
import { processOutages } from './process-outages.ts';
import { storeOutages } from './store-outages.ts';

/** All outages that are tested. The groups that take longest come first. */
export const outageGroups: readonly OutageGroup[] = [...processOutages, ...storeOutages, ...networkOutages];
