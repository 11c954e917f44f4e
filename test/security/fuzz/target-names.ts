/** In a file of their own, so that `--help` does not load the targets. */
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
