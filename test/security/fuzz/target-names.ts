/** Apart from what they load, so that `--help` need not load it. */
export const targetNames = [
  'canonical-path',
  'protected-decision',
  'forwarded-fields',
  'token-mutations',
  'entity-tag-lists',
  'refresh-token-bodies',
  'configuration',
  'protected-list',
  'protected-list-cut-short',
  'token-readers',
  'pair-shop',
  'wire',
] as const;

export type TargetName = (typeof targetNames)[number];
