import { Redis } from 'ioredis';
import { startHostProcess } from './host-process.ts';
import { Inbox } from './inbox.ts';
import { expectOutput, outputOf, type Row, type Script } from './row.ts';

export const FLOOR_QUEUE = 'floor:queue';
export const FLOOR_INBOX = 'floor:inbox';

/**
 * The row of the minimum with Redis: a list to the host (LPUSH, BRPOP) and a stream back (XADD, XREAD), without shell
 * and guarantees.
 */
export async function createFloorRow(redisUrl: string): Promise<Row> {
  const redis = new Redis(redisUrl);
  const inbox = new Inbox(redisUrl, FLOOR_INBOX);
  const host = await startHostProcess('./floor-host.ts', redisUrl);

  const run = async (script: Script): Promise<void> => {
    const { id, result } = inbox.expect();
    void redis.lpush(FLOOR_QUEUE, JSON.stringify({ id, output: outputOf(script) }));
    expectOutput(JSON.parse(await result).stdout, script);
  };
  return {
    name: 'floor',
    workerPid: host.pid,
    one: run,
    async many(sessions, perSession) {
      await Promise.all(Array.from({ length: sessions * perSession }, () => run('echo hi')));
    },
    async close() {
      await host.close();
      inbox.close();
      redis.disconnect();
    },
  };
}
