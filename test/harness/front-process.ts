import { engines, startFront } from './forwarding-front.ts';

/** `front-process ENGINE UPSTREAM-PORT`: a front as a process, which tells its port and, when asked, its memory. */
const [name, upstreamPort] = process.argv.slice(2);
const engine = engines.find((one) => one.name === name);
if (engine === undefined) throw new Error(`no engine ${name}`);

const front = await startFront({
  createEngine: engine.createEngine,
  upstreamPort: Number(upstreamPort),
  bodyLimitBytes: 1_000_000_000,
});
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
