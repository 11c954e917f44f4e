/** A worker: what `serve` does in one process, told by its primary when and with what. */
import { runWorker } from './worker.ts';

runWorker();
