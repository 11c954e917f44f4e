import { engines, startFront } from './forwarding-front.ts';

/** `front-process ENGINE UPSTREAM-PORT`: a front as a process, which tells its port and, when asked, its memory. */
const [name, upstreamPort] = process.argv.slice(2);
const engine = engines.find((one) => one.name === name);
if (engine === undefined) throw new Error(`no engine ${name}`);

/** Bytes that are in use once the garbage is gone. */
function liveBytes(): number {
  global.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

let peak = liveBytes();
let isSampling = false;
/** Each look collects all garbage; whatever holds a body holds it while its reader waits, which is many times as long. */
const samplingMs = 100;
setInterval(() => {
  if (isSampling) peak = Math.max(peak, liveBytes());
}, samplingMs);

const front = await startFront({
  createEngine: engine.createEngine,
  upstreamPort: Number(upstreamPort),
  bodyLimitBytes: 1_000_000_000,
});
process.on('message', (message) => {
  const usage = process.cpuUsage();
  if (message === 'cpu') process.send?.(usage.user + usage.system);
  if (message !== 'memory') return;
  isSampling = true;
  const now = liveBytes();
  process.send?.({ now, peak: Math.max(peak, now) });
  peak = now;
});
process.on('disconnect', () => process.exit());
process.send?.(front.port);
