import { parentPort, workerData } from 'node:worker_threads';
import type { ListBatch, ListThreadInput } from './list-thread.ts';
import { parseProtectedList } from './protected-list-document.ts';
import { renderProtectedResources } from './published-documents.ts';

/** Rows that the serving thread receives in less than a millisecond. */
const batchRows = 200;
/** More errors than anybody mends at once. */
const maxErrors = 200;

// The worker gets one text in its life. Each message asks for one batch of its rows.
const { text, file } = workerData as ListThreadInput;
const { list, problems } = parseProtectedList(text, file);
const errors = problems.filter(({ severity }) => severity === 'error');
const rows = list?.rows ?? [];
const rendered = list && renderProtectedResources(list);
let sent = 0;

parentPort?.on('message', () => {
  const batch = rows.slice(sent, sent + batchRows);
  sent += batch.length;
  const isLast = sent === rows.length;
  const message: ListBatch = {
    rows: batch,
    isLast,
    ...(isLast && { rendered, problems: list === undefined ? errors.slice(0, maxErrors) : [] }),
  };
  parentPort?.postMessage(message);
  if (isLast) parentPort?.close();
});
