import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { useAttackStage } from '../harness/attack-stage.ts';
import { openRawConnection } from '../harness/raw-client.ts';

const stage = useAttackStage();

/** X9: an octet in a chunk of its own must not cost an object of its own for as long as the body is collected. */
it('X9: a collected body takes memory by its octets, however it is cut', async () => {
  const before = await residentMiB(stage.shopward.pid);
  const connection = await openRawConnection(stage.port);
  const fields = 'Host: shop.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';
  await connection.write(`POST /refresh-tokens HTTP/1.1\r\n${fields}\r\n\r\n`);
  const chunks = Buffer.from('1\r\na\r\n'.repeat(100_000));
  for (let i = 0; i < 10; i++) await connection.write(chunks);
  await connection.write('0\r\n\r\n');
  expect((await connection.readResponse('POST')).status).toBe(400);
  connection.close();
  // 1 MB; as objects they were 400.
  expect((await residentMiB(stage.shopward.pid, 'VmHWM')) - before).toBeLessThan(150);
}, 60_000);

async function residentMiB(pid: number, line: 'VmRSS' | 'VmHWM' = 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${line}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}
