/** A replica that can be killed. Arguments: port of the shop, JWKS URL, Redis URL, two times. It prints its port. */
import { startReplica } from './replica.ts';

const [, , port, jwksUrl = '', redisUrl = '', answerWithinMs, marginMs] = process.argv;
const times = { answerWithinMs: Number(answerWithinMs), marginMs: Number(marginMs) };
const replica = await startReplica({ port: Number(port), jwksUrl }, redisUrl, times);
process.stdout.write(`${replica.port}\n`);
