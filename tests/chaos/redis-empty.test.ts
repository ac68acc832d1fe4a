import { fleetKeys, tenantKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { keyspaceOf } from '../support/keyspace.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Promise: when Redis comes back without a session, the host declares the session, even if a client notices the loss
// much sooner. In the test the host is stopped until the client has noticed it.

const SCRIPT = 'echo ran >> /tmp/runs; until [ -e /tmp/go ]; do sleep 0.1; done; echo over';

describe('a session', () => {
  test.concurrent.each(['nothing', 'a state from before the session'])(
    'keeps its shell when Redis returns with %s, even if the client notices first',
    async (state) => {
      await using own = await startOwnRedis();
      const { stack, inspect } = await startInspectedFleet({ redisUrl: own.url, workers: 2 });
      const keys = fleetKeys(keyspaceOf(stack.namespace));
      const owner = async () => {
        const [sandbox] = await inspect.containers('s');
        return stack.workers.find(({ hostId }) => hostId === sandbox?.hostId);
      };
      try {
        if (state !== 'nothing') await own.redis.save();
        const session = await stack.fleet.session('s');
        await session.run('before=1');
        const running = await session.submit(SCRIPT, { timeoutMs: 60_000 });
        const waiting = await session.submit('echo waited >> /tmp/runs', { timeoutMs: 60_000 });
        const container = await inspect.container('s');
        await inspect.untilFile(container, '/tmp/runs');
        const host = await owner();
        host?.signal('SIGSTOP');
        await own.restart();
        // When an accepted command is gone, the client first opens the session again, which adds it to the index.
        await until(
          () => own.redis.zscore(tenantKeys(keyspaceOf(stack.namespace), 'default').index, 's'),
          (score) => score !== null,
        );
        await until(
          () => own.redis.exists(keys.restoring),
          (count) => count === 1,
        );
        const opened = stack.fleet.session('s');
        host?.signal('SIGCONT');
        const go = await container.exec({ Cmd: ['touch', '/tmp/go'] });
        await go.start({ Detach: true });
        expect(await running.result()).toMatchObject({ outcome: 'success', stdout: 'over\n', shell: { epoch: 1 } });
        expect((await waiting.result()).outcome).toBe('success');
        expect(await (await opened).run('cat /tmp/runs; echo $before')).toMatchObject({
          stdout: 'ran\nwaited\n1\n',
          shell: { state: 'kept', epoch: 1 },
        });
        expect((await inspect.containers()).map(({ id }) => id)).toEqual([container.id]);
      } finally {
        for (const worker of stack.workers) worker.signal('SIGCONT');
        await endInspectedFleet(stack, inspect);
      }
    },
  );
});
