import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { checkoutRoot, ensureWorkerImage, findDocker } from '@shellfleet/setup';
import { GenericContainer, Wait } from 'testcontainers';
import { beforeAll, describe, expect, inject, test } from 'vitest';

// The container that would remove leftovers needs an image that may be missing, so this test removes its containers
// itself.
beforeAll(() => {
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  process.env.DOCKER_HOST = inject('dockerHost');
});

describe('the worker image', () => {
  test('serves sessions in a container that has the state directory at the host’s path', async () => {
    const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
    const deps = { endpoint: engine!.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
    const image = await ensureWorkerImage(deps, inject('sessionImage'));
    const stateDirectory = await mkdtemp(join(tmpdir(), 'sf-'));
    const sealKey = randomBytes(32).toString('base64');
    const namespace = `t-${randomBytes(5).toString('hex')}`;
    const redisUrl = inject('redisUrl');
    const socket = inject('dockerHost').replace('unix://', '');
    const worker = await new GenericContainer(image)
      .withNetworkMode('host')
      .withBindMounts([
        { source: socket, target: '/var/run/docker.sock' },
        { source: stateDirectory, target: stateDirectory },
      ])
      .withEnvironment({
        SHELLFLEET_REDIS_URL: redisUrl,
        SHELLFLEET_NAMESPACE: namespace,
        SHELLFLEET_SEAL_KEY: sealKey,
        SHELLFLEET_STATE_DIR: stateDirectory,
        SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
      })
      .withWaitStrategy(Wait.forLogMessage(/worker\.started/))
      .start();
    try {
      await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
      const session = await fleet.session('in-a-container');
      expect(await session.run('echo hi from $PWD')).toMatchObject({
        outcome: 'success',
        stdout: 'hi from /workspace\n',
      });
      await session.close();
    } finally {
      await worker.stop();
      await rm(stateDirectory, { recursive: true, force: true });
    }
  }, 120_000);
});
