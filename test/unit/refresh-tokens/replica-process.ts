/** A replica that can be killed: upstream port, JWKS and Redis come as arguments; prints its port. */
import { startReplica } from './replica.ts';

const [, , port, jwksUrl = '', redisUrl = '', answerWithinMs, marginMs] = process.argv;
const times = { answerWithinMs: Number(answerWithinMs), marginMs: Number(marginMs) };
const replica = await startReplica({ port: Number(port), jwksUrl }, redisUrl, times);
process.stdout.write(`${replica.port}\n`);
