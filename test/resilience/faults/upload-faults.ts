import { startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { startShopward } from '../../harness/shopward.ts';
import { uploadClients, uploadSettings, uploads } from '../../harness/upload-clients.ts';
import { checkScene, type Scene } from './scene.ts';

/** Uploads of each kind by each client: 304 in all. */
const rounds = 19;

/** Uploads that are refused before they have ended. Each client must get the status. */
export async function runUploadFaults(): Promise<Scene[]> {
  const shop = await startRecordingUpstream(() => undefined);
  const shopward = await startShopward({ upstream: `http://127.0.0.1:${shop.port}`, ...uploadSettings });
  const scenes: Scene[] = [];
  for (const [client, send] of Object.entries(uploadClients)) {
    for (const [path, status, bytes] of uploads) {
      const seen = new Set<string>();
      for (let round = 0; round < rounds; round += 1) {
        seen.add(await send(`http://127.0.0.1:${shopward.port}${path}`, bytes).then(String, String));
      }
      const name = `${rounds} uploads of ${bytes / 1e6} MB to ${path}, ${client}`;
      scenes.push(checkScene(name, { answers: [...seen].join(', ') }, { answers: String(status) }));
    }
  }
  await shopward.kill();
  await shop.close();
  return scenes;
}
