import type { DrillGroup } from './drill.ts';
import { networkDrills } from './network-drills.ts';
import { processDrills } from './process-drills.ts';
import { storeDrills } from './store-drills.ts';

/** All outages that are tested. The groups that take longest come first. */
export const drillGroups: readonly DrillGroup[] = [...processDrills, ...storeDrills, ...networkDrills];
