import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Result } from '@shellfleet/client';
import { PROTOCOL_VERSION } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { newerWorker, sourceWorker, THIS_WORKER } from '../support/newer-worker.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const newerProducer = fileURLToPath(new URL('../fixtures/runs-newer-session.ts', import.meta.url));
async function runNewer({ redisUrl, namespace, sealKey }: TestFleet, session: string): Promise<Result> {
  const args = ['--conditions=@shellfleet/source', '--no-warnings', newerProducer];
  const env = { ...process.env, ...newerWorker('schema') };
  const { stdout } = await promisify(execFile)(process.execPath, [...args, redisUrl, namespace, sealKey, session], {
    env,
  });
  return JSON.parse(stdout) as Result;
}

describe('a rolling upgrade', () => {
  test('runs old sessions on hosts of both versions, and newer ones on newer hosts only', async () => {
    // Each host has room for all five sessions, so either host may take the three older sessions.
    await using stack = await startFleet({ workers: 2, slots: 5, program: sourceWorker });
    const { fleet, workers } = stack;
    const [first, second] = workers;
    const sessions = await Promise.all(['a', 'b', 'c'].map((id) => fleet.session(id)));
    await Promise.all(sessions.map((session) => session.run('count=1')));

    await second?.stop('SIGTERM');
    await second?.start(newerWorker('schema'));
    // The shells of the upgraded host are adopted by its newer worker.
    for (const session of sessions)
      expect(await session.run('echo $count')).toMatchObject({ stdout: '1\n', shell: { state: 'kept', epoch: 1 } });
    // The older host has free slots too, and takes none of the newer sessions.
    const results = await Promise.all(['n1', 'n2'].map((id) => runNewer(stack, id)));
    expect(results.map(({ stdout, hostId }) => ({ stdout, hostId }))).toEqual(
      Array(2).fill({ stdout: 'newer\n', hostId: 'h2' }),
    );
    const before = await Promise.all(['e', 'f'].map((id) => fleet.run('echo $0', { spec: { labels: { id } } })));
    expect(before.map(({ outcome }) => outcome)).toEqual(['success', 'success']);

    await first?.stop('SIGTERM');
    await first?.start(newerWorker('schema'));
    for (const session of sessions)
      expect(await session.run('echo $count')).toMatchObject({ stdout: '1\n', shell: { state: 'kept', epoch: 1 } });
  }, 120_000);

  test('keeps shells over a build with the next protocols that knows these, and back', async () => {
    await using stack = await startFleet({ program: sourceWorker });
    const [worker] = stack.workers;
    const old = await stack.fleet.session('old');
    await old.run('count=1');
    await worker?.stop('SIGTERM');
    await worker?.start(newerWorker('next'));
    const young = await stack.fleet.session('young');
    await young.run('count=2');
    const kept = async () => {
      const results = [await old.run('echo $count'), await young.run('echo $count')];
      expect(results).toMatchObject(
        [1, 2].map((count) => ({ stdout: `${count}\n`, shell: { state: 'kept', epoch: 1 } })),
      );
    };
    await kept();
    await worker?.stop('SIGTERM');
    await worker?.start(THIS_WORKER);
    await kept();
  });

  test('keeps newer sessions waiting with a reason, and starts no worker of another protocol version', async () => {
    await using stack = await startFleet({ workers: 2, slots: 2, program: sourceWorker });
    const { fleet, workers } = stack;
    const [, second] = workers;
    const waiting = runNewer(stack, 'waits');
    await until(
      async () => {
        for await (const info of fleet.sessions()) if (info.noHostReason?.includes('(schema 3)')) return true;
        return false;
      },
      (found) => found,
    );
    // The older hosts are not delayed by the waiting session.
    expect(await fleet.run('echo older')).toMatchObject({ stdout: 'older\n' });

    await second?.stop('SIGTERM');
    await expect(second?.start(newerWorker('protocol'))).rejects.toThrow(
      `have version ${PROTOCOL_VERSION} of the protocol, and this process has version ${PROTOCOL_VERSION + 1}`,
    );
    await second?.start(newerWorker('schema'));
    expect(await waiting).toMatchObject({ stdout: 'newer\n', hostId: 'h2' });
  }, 120_000);
});
