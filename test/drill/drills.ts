import type { Drill } from './drill.ts';
import { networkDrills } from './network-drills.ts';
import { processDrills } from './process-drills.ts';
import { storeDrills } from './store-drills.ts';

/** Everything that is known to break at night. */
export const drills: readonly Drill[] = [...storeDrills, ...processDrills, ...networkDrills];
