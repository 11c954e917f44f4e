import { startFront } from './forwarding-front.ts';

/** `front-process UPSTREAM-PORT`: a front as a process, which tells its port and, when asked, its memory. */
const [, , upstreamPort] = process.argv;

const front = await startFront({ upstreamPort: Number(upstreamPort), bodyLimitBytes: 1_000_000_000 });
process.on('message', (message) => {
  if (message === 'turn') process.send?.(0);
  if (message === 'memory') process.send?.(liveBytes());
});
process.on('disconnect', () => process.exit());
process.send?.(front.port);

/** Bytes that are in use once the garbage is gone. */
function liveBytes(): number {
  global.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
