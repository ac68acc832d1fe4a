import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet } from '../support/start-fleet.ts';

// A worker is replaced by one of another version while a shell runs. The sandbox is of policy `host`, whose record is a
// file that the test can change. For a container the record is a label.

describe('a keeper of another protocol version', () => {
  test.runIf(isRoot)('loses its shell, and Result and log give the reason', async () => {
    await using stack = await startFleet({
      env: {
        DOCKER_HOST: 'unix:///nonexistent/docker.sock',
        SHELLFLEET_POLICIES: 'host',
        SHELLFLEET_HOST_USER: '4715',
      },
    });
    const [worker] = stack.workers;
    const session = await stack.fleet.session('upgraded', { policy: 'host' });
    expect(await session.run('kept=yes')).toMatchObject({ shell: { state: 'kept', epoch: 1 } });
    await worker?.kill();
    const files = await readdir(stack.stateDirectory, { recursive: true });
    const path = join(stack.stateDirectory, files.find((file) => file.endsWith('/record.json')) ?? 'no record');
    const record = JSON.parse(await readFile(path, 'utf8')) as { keeperProtocol: number };
    await writeFile(path, JSON.stringify({ ...record, keeperProtocol: record.keeperProtocol - 1 }));
    await worker?.start();
    expect(await session.run('echo "[$kept]"')).toMatchObject({
      stdout: '[]\n',
      shell: {
        state: 'lost',
        epoch: 2,
        reason: `Its keeper uses protocol version ${record.keeperProtocol - 1}, and this worker uses version ${record.keeperProtocol}.`,
      },
    });
    expect(worker?.log).toMatch(
      /"code":"PROTOCOL_MISMATCH".*session\.adoption-failed|session\.adoption-failed.*PROTOCOL_MISMATCH/,
    );
    await session.close();
  });
});
