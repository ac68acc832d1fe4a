import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { parseDocument } from '@shellfleet/policy';
import { checkoutRoot, ensureWorkerImage, findDocker } from '@shellfleet/setup';
import { GenericContainer, Wait } from 'testcontainers';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';

// The container that would remove leftovers needs an image that may be missing, so this test removes its containers
// itself.
beforeAll(() => {
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  process.env.DOCKER_HOST = inject('dockerHost');
});

const composeSchema = z.object({
  services: z.object({
    worker: z.object({ environment: z.record(z.string(), z.string()), volumes: z.array(z.string()) }),
  }),
});

/** Reads the worker of infra/compose.yaml, with these variables in its .env file. */
async function readComposedWorker(variables: Record<string, string>) {
  const text = await readFile(join(checkoutRoot, 'infra/compose.yaml'), 'utf8');
  const filled = text.replace(
    /\$\{(\w+):[-?]([^}]*)\}/g,
    (_all, name: string, usual: string) => variables[name] ?? usual,
  );
  return parseDocument(filled, composeSchema, 'infra/compose.yaml').services.worker;
}

describe('the worker image', () => {
  test('serves sessions with the settings and directories of the compose file', async () => {
    const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
    const deps = { endpoint: engine!.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
    const image = await ensureWorkerImage(deps, inject('sessionImage'));
    const stateDirectory = await mkdtemp(join(tmpdir(), 'sf-'));
    const sealKey = randomBytes(32).toString('base64');
    const namespace = `t-${randomBytes(5).toString('hex')}`;
    const redisUrl = inject('redisUrl');
    const socket = inject('dockerHost').replace('unix://', '');
    const service = await readComposedWorker({
      SHELLFLEET_SEAL_KEY: sealKey,
      SHELLFLEET_STATE_DIR: stateDirectory,
      SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
    });
    const mounts = service.volumes.map((volume) => {
      const [source = '', target = ''] = volume.split(':');
      return { source: source === '/var/run/docker.sock' ? socket : source, target };
    });
    // The socket of the engine belongs to root, and the image's own user is not.
    const worker = await new GenericContainer(image)
      .withUser('root')
      .withNetworkMode('host')
      .withBindMounts(mounts)
      // The Redis of the compose file has an image that this machine may lack.
      .withEnvironment({ ...service.environment, SHELLFLEET_REDIS_URL: redisUrl, SHELLFLEET_NAMESPACE: namespace })
      .withWaitStrategy(Wait.forLogMessage(/worker\.started/))
      .start();
    try {
      await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
      const session = await fleet.session('in-a-container');
      expect(await session.run('echo hi from $PWD')).toMatchObject({
        outcome: 'success',
        stdout: 'hi from /workspace\n',
        hostId: 'compose',
      });
      await session.close();
    } finally {
      await worker.stop();
      await rm(stateDirectory, { recursive: true, force: true });
    }
  }, 120_000);
});
