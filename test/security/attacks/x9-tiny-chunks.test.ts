import { expect, it } from 'vitest';
import { useAttackStage } from '../../harness/attack-stage.ts';
import { openRawConnection } from '../../harness/raw-client.ts';

const stage = useAttackStage();

/** X9: `test/unit/server/body-memory.test.ts` measures the memory of a body in tiny chunks. */
it('X9: 400, not 413, for a token request in 120,000 chunks of one octet', async () => {
  const connection = await openRawConnection(stage.port);
  const fields = 'Host: shop.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';
  await connection.write(`POST /refresh-tokens HTTP/1.1\r\n${fields}\r\n\r\n`);
  const chunks = Buffer.from('1\r\na\r\n'.repeat(12_000));
  for (let i = 0; i < 10; i++) await connection.write(chunks);
  await connection.write('0\r\n\r\n');
  expect((await connection.readResponse('POST')).status).toBe(400);
  connection.close();
});

it('X9: 413 for a token request in 131,073 chunks of one octet', async () => {
  const connection = await openRawConnection(stage.port);
  const fields = 'Host: shop.example\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked';
  await connection.write(`POST /refresh-tokens HTTP/1.1\r\n${fields}\r\n\r\n`);
  await connection.write(Buffer.from('1\r\na\r\n'.repeat(131_073)));
  expect((await connection.readResponse('POST')).status).toBe(413);
  connection.close();
});
