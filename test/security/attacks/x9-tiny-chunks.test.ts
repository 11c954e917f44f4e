import { expect, it } from 'vitest';
import { useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const stage = useAttackStage();

/** X9: what a body in tiny chunks takes while it is under way is measured in `test/unit/server/body-memory.test.ts`. */
it('X9: a collected body counts by its octets, however it is cut', async () => {
  const connection = await openRawConnection(stage.port);
  const fields = 'Host: shop.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';
  await connection.write(`POST /refresh-tokens HTTP/1.1\r\n${fields}\r\n\r\n`);
  const chunks = Buffer.from('1\r\na\r\n'.repeat(12_000));
  for (let i = 0; i < 10; i++) await connection.write(chunks);
  await connection.write('0\r\n\r\n');
  expect((await connection.readResponse('POST')).status).toBe(400);
  connection.close();
});

it('X9: one that is longer than may be kept is refused', async () => {
  const connection = await openRawConnection(stage.port);
  const fields = 'Host: shop.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';
  await connection.write(`POST /refresh-tokens HTTP/1.1\r\n${fields}\r\n\r\n`);
  await connection.write(Buffer.from('1\r\na\r\n'.repeat(131_073)));
  expect((await connection.readResponse('POST')).status).toBe(413);
  connection.close();
});
