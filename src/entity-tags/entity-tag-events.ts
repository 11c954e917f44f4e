/** What happened to a tracked request; stable words for metrics and the console. */
export type EntityTagEvent =
  | 'tagged' // a read's answer carries a tag
  | 'not-modified' // 304 after the shop was asked
  | 'fresh-not-modified' // 304 from the store
  | 'untagged' // a read that no tag may be given for (a change in between, a hold, an unknown write)
  | 'untracked-too-large' // passed through: too large, endless or stalling
  | 'untracked-content' // not JSON, or a content coding that we cannot undo
  | 'untracked-aged' // `Age` above 0: a cache behind us, which writes do not reach
  | 'untracked-stranger' // a collection that was read without a verified token
  | 'replaced-state-read' // shows what an applied write has replaced: reads lag behind writes, or the write changed nothing
  | 'precondition-missing'
  | 'precondition-failed'
  | 'lenient-spelling'
  | 'collection-write' // refused: it would change members whose tags nobody has named
  | 'claimed'
  | 'lease-busy' // waited in vain for another write
  | 'quiet' // refused: an unknown write may still land
  | 'hold' // refused: the store is new
  | 'applied'
  | 'refused'
  | 'unsent'
  | 'spoilt'
  | 'unknown-outcome'
  | 'outcome-unstored' // the write is through, the store did not take its outcome
  | 'store-unavailable';
