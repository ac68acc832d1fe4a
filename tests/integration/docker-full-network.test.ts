import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseKeyspace, sessionSpecSchema } from '@shellfleet/protocol';
import { createDockerSandboxes, Engine, ensureFullNetwork, type Sandboxes } from '@shellfleet/worker';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { keyspaceOf } from '../support/keyspace.ts';

const HOSTS = ['one', 'two', 'three'];
const keeperPath = fileURLToPath(new URL('../fixtures/stands-in-for-the-keeper.sh', import.meta.url));
const socketPath = inject('dockerHost').replace('unix://', '');
const docker = new Docker({ socketPath });
const namespace = keyspaceOf(`test-full-network-${process.pid}`);
const filters = { label: [`shellfleet.fleet=${parseKeyspace(namespace).fleetId}`] };
let directory: string;
let hosts: Sandboxes[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'full-network-'));
  const open = (hostId: string) =>
    createDockerSandboxes({
      namespace,
      hostId,
      hostKey: Buffer.alloc(32, 7),
      directory: join(directory, hostId),
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
  await rm(directory, { recursive: true });
});

describe('the network `full`', () => {
  // Workers that are started together may create several networks, and must all keep the same one.
  test('is created once by six workers at the same time, in each of ten rounds', async () => {
    const engines = Array.from({ length: 6 }, () => new Engine(socketPath));
    const made: { networks: string[]; ids: string[] }[] = [];
    for (let round = 0; round < 10; round += 1) {
      const ids = await Promise.all(engines.map((engine) => ensureFullNetwork(engine, namespace)));
      const networks = await docker.listNetworks({ filters });
      made.push({ networks: networks.map(({ Id }) => Id), ids });
      for (const { Id } of networks) await docker.getNetwork(Id).remove();
    }
    await Promise.all(engines.map((engine) => engine.close()));
    expect(made).toEqual(made.map(({ networks: [id] }) => ({ networks: [id], ids: engines.map(() => id) })));
  });

  test('is refused with the reason if another network owns its bridge', async () => {
    const { fleetId } = parseKeyspace(namespace);
    const Options = { 'com.docker.network.bridge.name': `sf-${fleetId}` };
    const other = await docker.createNetwork({ Name: `other-${fleetId}`, Driver: 'bridge', Options });
    const engine = new Engine(socketPath);
    try {
      await expect(ensureFullNetwork(engine, namespace)).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringMatching(/cannot make it: .*sf-/),
      });
    } finally {
      await engine.close();
      await other.remove();
    }
  });

  test('is shared by all sessions that several hosts of an engine start together', async () => {
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
