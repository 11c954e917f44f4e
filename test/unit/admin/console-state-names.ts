/** Apart from what makes them, so that `--help` need not load it. */
export const stateNames = [
  'new',
  'healthy',
  'attack',
  'shop down',
  'Redis down',
  'observe',
  'two things',
] as const;

export type StateName = (typeof stateNames)[number];
