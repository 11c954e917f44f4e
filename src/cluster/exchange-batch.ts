import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

export interface ExchangeBatch {
  add(record: ExchangeRecord): void;
}

const pauseMs = 200;
/** A primary that does not read must not fill the memory of those who serve; the console then misses some. */
const most = 20_000;

/** Gathers exchanges and sends them together, one batch at a time; requests never wait for it. */
export function createExchangeBatch(
  send: (records: readonly ExchangeRecord[]) => Promise<void>,
): ExchangeBatch {
  let records: ExchangeRecord[] = [];
  let isDue = false;
  const flush = () => {
    const batch = records;
    records = [];
    void send(batch).then(() => {
      isDue = false;
      if (records.length > 0) schedule();
    });
  };
  const schedule = () => {
    if (isDue) return;
    isDue = true;
    setTimeout(flush, pauseMs).unref();
  };
  return {
    add(record) {
      if (records.length < most) records.push(record);
      schedule();
    },
  };
}
