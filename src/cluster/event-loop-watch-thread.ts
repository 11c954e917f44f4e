/** The thread that watches an event loop: see `watchEventLoop`. */
import { Session } from 'node:inspector';
import { workerData } from 'node:worker_threads';
import { writeToStdout } from '../telemetry/log-output.ts';
import type { WatchedEventLoop } from './event-loop-watch.ts';

const { heartbeats, heartbeatMs, stackWithinMs, stallMs, worker } = workerData as WatchedEventLoop;
const stackFrames = 12;
const write = writeToStdout();

let lastHeartbeat = -1;
/** Counted in ticks of this thread, not by a clock: after the whole process was suspended, its event loop is not stuck. */
let checksWithoutHeartbeat = 0;

const timer = setInterval(() => {
  const heartbeat = Atomics.load(heartbeats, 0);
  checksWithoutHeartbeat = heartbeat === lastHeartbeat ? checksWithoutHeartbeat + 1 : 0;
  lastHeartbeat = heartbeat;
  if (checksWithoutHeartbeat * heartbeatMs < stallMs) return;
  clearInterval(timer);
  readStack(end);
}, heartbeatMs);

/** Reads the call stack of the main thread, the innermost call first. */
function readStack(done: (stack: readonly string[]) => void): void {
  setTimeout(done, stackWithinMs, []);
  const session = new Session();
  const urls = new Map<string, string>();
  session.connectToMainThread();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.on('Debugger.paused', ({ params }) => {
    const frames = params.callFrames.slice(0, stackFrames);
    done(
      frames.map(({ functionName, location }) => {
        const file = urls.get(location.scriptId)?.replace(/^file:\/\//, '') ?? '';
        return `${functionName || '(anonymous)'} ${file}:${location.lineNumber + 1}`;
      }),
    );
  });
  session.post('Debugger.enable', () => session.post('Debugger.pause'));
}

function end(stack: readonly string[]): void {
  const msg = `the event loop has been blocked for ${stallMs / 1000} s; the process ends`;
  const entry = {
    level: 'fatal',
    time: new Date().toISOString(),
    worker,
    event: 'event-loop-stuck',
    stack,
    msg,
  };
  try {
    write(Buffer.from(`${JSON.stringify(entry)}\n`));
  } catch {
    // If the line cannot be written, the process still ends.
  }
  process.kill(process.pid, 'SIGKILL');
}
