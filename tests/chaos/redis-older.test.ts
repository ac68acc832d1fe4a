import { fleetKeys, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { keyspaceOf } from '../support/keyspace.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when Redis comes back with an older state, each host declares the sessions and commands that it runs. A
// living shell goes on under its fence, and a command that had begun ends once. `SAVE` keeps the state to which
// `restart` returns.

const SCRIPT = 'echo begun; echo ran >> /tmp/runs; until [ -e /tmp/go ]; do sleep 0.1; done; echo over';

async function ownerOf({ redis }: OwnRedis, { namespace }: TestFleet): Promise<unknown> {
  const [fence, host] = await redis.hmget(sessionKeys(keyspaceOf(namespace), 'default', 's').state, 'fence', 'host');
  const owner = await redis.hget(fleetKeys(keyspaceOf(namespace)).owners, 'default:s');
  const counter = await redis.get(fleetKeys(keyspaceOf(namespace)).fence);
  return { fence, host, owner, counter };
}

describe('a Redis that returns to an older state', () => {
  test.concurrent.each([
    ['before the command was accepted', 'accepted'],
    ['before any host had the session', 'owned'],
  ])('learns the owner again, and the command ends once, with the state from %s', async (_when, lost) => {
    await using own = await startOwnRedis();
    const { stack, inspect } = await startInspectedFleet({ redisUrl: own.url, workers: 2 });
    try {
      const session = await stack.fleet.session('s');
      if (lost === 'accepted') await session.run('before=1');
      else for (const worker of stack.workers) worker.signal('SIGSTOP');
      if (lost === 'accepted') await own.redis.save();
      const command = await session.submit(SCRIPT, { timeoutMs: 60_000 });
      if (lost === 'owned') {
        await own.redis.save();
        for (const worker of stack.workers) worker.signal('SIGCONT');
      }
      await inspect.untilOutput('s');
      const container = await inspect.container('s');
      await inspect.untilFile(container, '/tmp/runs');
      const before = await ownerOf(own, stack);
      await own.restart();
      await until(
        () => ownerOf(own, stack),
        (now) => JSON.stringify(now) === JSON.stringify(before),
      );
      const go = await container.exec({ Cmd: ['touch', '/tmp/go'] });
      await go.start({ Detach: true });
      const result = await command.result();
      expect(result).toMatchObject({
        outcome: 'success',
        stdout: expect.stringMatching(/over\n$/),
        shell: { epoch: 1 },
      });
      expect(await session.run('cat /tmp/runs; echo $before')).toMatchObject({
        stdout: lost === 'accepted' ? 'ran\n1\n' : 'ran\n\n',
        shell: { state: 'kept', epoch: 1 },
      });
      expect((await inspect.events('s')).filter(({ type }) => type === 'command.completed').length).toBe(
        lost === 'accepted' ? 3 : 2,
      );
      expect((await inspect.containers()).length).toBe(1);
    } finally {
      for (const worker of stack.workers) worker.signal('SIGCONT');
      await endInspectedFleet(stack, inspect);
    }
  });
});
