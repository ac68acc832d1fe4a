import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseKeyspace, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyspaceOf } from '../support/keyspace.ts';

const HOSTS = ['one', 'two', 'three'];
const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const socketPath = inject('dockerHost').replace('unix://', '');
const docker = new Docker({ socketPath });
const namespace = keyspaceOf(`test-full-network-${process.pid}`);
const filters = { label: [`shellfleet.fleet=${parseKeyspace(namespace).fleetId}`] };
let folder: string;
let hosts: Sandboxes[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'full-network-'));
  const open = (hostId: string) =>
    createDockerSandboxes({
      namespace,
      hostId,
      hostKey: Buffer.alloc(32, 7),
      folder: join(folder, hostId),
      keeperPath,
      transport: 'attach',
      socketPath,
      allowances: {
        images: 'any',
        defaultImage: inject('sessionImage'),
        users: [],
        workspaces: [],
        bounds: { memoryBytes: 2 ** 40, cpus: 64, pids: 4096 },
        sandbox: { modes: ['workspace-write'], networks: ['full'], hosts: [] },
      },
    });
  hosts = await Promise.all(HOSTS.map(open));
});
afterAll(async () => {
  for (const sandboxes of hosts) {
    await Promise.all((await sandboxes.list()).map(({ sandbox }) => sandbox.remove()));
    await sandboxes.close();
  }
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
  await rm(folder, { recursive: true });
});

describe('the network `full`', () => {
  test('is one network for all sessions that several hosts of an engine start at once', async () => {
    const spec = sessionSpecSchema.parse({ sandbox: { network: 'full' } });
    const creating = hosts.flatMap((sandboxes) =>
      ['a', 'b'].map((session) => sandboxes.create({ namespace, tenant: 'acme', session }, spec)),
    );
    await Promise.all(creating);
    const networks = await docker.listNetworks({ filters });
    const containers = await docker.listContainers({ all: true, filters });
    const used = containers.map(({ HostConfig }) => HostConfig.NetworkMode);
    expect(networks).toHaveLength(1);
    expect(used).toEqual(Array.from({ length: HOSTS.length * 2 }, () => networks[0]?.Id));
  });
});
