import { afterAll, describe } from 'vitest';
import { engines, type ForwardingFront, type FrontOptions, startFront } from './forwarding-front.ts';
import { type RecordingUpstream, type Script, startRecordingUpstream } from './recording-upstream.ts';

export interface Stage {
  readonly port: number;
  readonly upstream: RecordingUpstream;
  readonly front: ForwardingFront;
}

export type StartStage = (script: Script, options?: Partial<FrontOptions>) => Promise<Stage>;

/**
 * The same tests over every engine, side by side: each starts an upstream, a forwarder and a front of its own, which end
 * when all tests have. So whatever else they use is their own, too; `expect.poll` is that of the test's context.
 */
export function eachEngine(title: string, define: (start: StartStage, engine: string) => void): void {
  describe.concurrent.each(engines)(`${title} ($name)`, ({ name, createEngine }) => {
    const stages: Stage[] = [];
    afterAll(async () => {
      for (const { front, upstream } of stages) {
        await front.close();
        await upstream.close();
      }
    });
    define(async (script, options = {}) => {
      const upstream = await startRecordingUpstream(script);
      const front = await startFront({ createEngine, upstreamPort: upstream.port, ...options });
      const stage = { port: front.port, upstream, front };
      stages.push(stage);
      return stage;
    }, name);
  });
}
