import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readRecord } from '@shellfleet/mailbox';
import { recordKey, sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { untilFound } from '../support/until.ts';

const sleepingProducer = fileURLToPath(new URL('../support/sleeping-producer.ts', import.meta.url));

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own?.[Symbol.asyncDispose]());

/** Returns the next message of a child; throws if the child ends before one. */
async function nextMessage(child: ChildProcess): Promise<string> {
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`The producer ended with ${code}.`);
    }),
  ]);
  return message;
}

/** Ends the connections of a stopped producer, so that the Result is not delivered to it. */
async function cutOff({ redis }: ClientStage): Promise<void> {
  const clients = String(await redis.client('LIST')).split('\n');
  const ids = clients
    .filter((line) => / name=shellfleet-(producer|feeds)-/.test(line))
    .map((line) => /id=(\d+)/.exec(line)?.[1]);
  await Promise.all(ids.map((id) => redis.client('KILL', 'ID', id as string)));
}

describe('a producer that slept for longer than the retention', () => {
  test.each([
    ['its record is gone', (keys: string[], record: string) => keys.filter((key) => key === record)],
    ['the session is gone too', (keys: string[]) => keys.filter((key) => key.includes('default:s}'))],
  ])('gets RESULT_EXPIRED when %s, and its command runs once', async (_what, choose) => {
    await using stage = await setClientStage(own);
    const child = fork(sleepingProducer, [own.url, stage.namespace, stage.sealKey], {
      execArgv: ['--conditions=@shellfleet/source', '--no-warnings'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    try {
      const entryId = (await nextMessage(child)).slice('s.'.length);
      child.kill('SIGSTOP');
      await cutOff(stage);
      const keys = sessionKeys(stage.keyspace, 'default', 's');
      const host = await stage.startHost();
      const ended = async () => (await readRecord(stage.redis, keys, entryId))?.state === 'ended';
      await untilFound('its command has ended', ended);
      // The deletion stands for the end of the retention.
      await stage.redis.del(...choose(await stage.keys(), recordKey(keys, entryId)));
      const answer = nextMessage(child);
      child.kill('SIGCONT');
      expect(await answer).toBe('RESULT_EXPIRED');
      expect(host.began.map(({ script }) => script)).toEqual(['echo ran']);
      expect(await stage.redis.exists(recordKey(keys, entryId), keys.queue)).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
