import { afterEach, describe } from 'vitest';
import { engines, type ForwardingFront, type FrontOptions, startFront } from './forwarding-front.ts';
import { type RecordingUpstream, type Script, startRecordingUpstream } from './recording-upstream.ts';

export interface Stage {
  readonly port: number;
  readonly upstream: RecordingUpstream;
  readonly front: ForwardingFront;
}

export type StartStage = (script: Script, options?: Partial<FrontOptions>) => Promise<Stage>;

/** The same tests over every engine: upstream, forwarder and a front for each, ended after each test. */
export function eachEngine(title: string, define: (start: StartStage, engine: string) => void): void {
  describe.each(engines)(`${title} ($name)`, ({ name, createEngine }) => {
    const stages: Stage[] = [];
    afterEach(async () => {
      for (const { front, upstream } of stages.splice(0)) {
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
