import type { DrillGroup } from './drill.ts';
import { networkDrills } from './network-drills.ts';
import { processDrills } from './process-drills.ts';
import { storeDrills } from './store-drills.ts';

/** Everything that is known to break at night. The groups that take longest come first. */
export const drillGroups: readonly DrillGroup[] = [...processDrills, ...storeDrills, ...networkDrills];
