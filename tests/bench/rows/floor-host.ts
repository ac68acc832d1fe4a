import { Redis } from 'ioredis';
import { FLOOR_INBOX, FLOOR_QUEUE } from './floor.ts';
import { noopResult } from './noop-result.ts';

const redisUrl = process.env.BENCH_REDIS_URL;
const redis = new Redis(redisUrl!);
const blocking = new Redis(redisUrl!);
await redis.ping();
process.on('disconnect', () => process.exit()); // the bench is gone
process.send?.('ready');

for (;;) {
  const [, text] = (await blocking.brpop(FLOOR_QUEUE, 0)) ?? [];
  if (text === undefined) continue;
  const { id, output } = JSON.parse(text) as { id: string; output: string };
  void redis.xadd(FLOOR_INBOX, 'MAXLEN', '~', 10_000, '*', 'id', id, 'd', noopResult(output));
}
