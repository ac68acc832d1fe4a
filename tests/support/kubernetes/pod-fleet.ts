import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keeperPath } from '@shellfleet/keeper';
import Docker from 'dockerode';
import { inject } from 'vitest';
import { type FleetOptions, startFleet, type TestFleet } from '../start-fleet.ts';
import { type Cluster, type ClusterOptions, startCluster } from './start-cluster.ts';
import { WORKER_RULES } from './worker-role.ts';

/** A node with room for every Pod of a test. */
const ROOMY = { name: 'node-1', capacity: { cpu: '128', memory: '128Gi', 'ephemeral-storage': '2Ti', pods: '500' } };

export interface PodFleet extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly stack: TestFleet;
}

export interface PodFleetOptions extends Omit<FleetOptions, 'transport' | 'machine'> {
  cluster?: ClusterOptions;
  /** Settings of the section `kubernetes`, in addition to those of the cluster. */
  section?: object;
  /** Further sections of the configuration file. */
  file?: object;
  /** Program of the keepers. Default: the one of this checkout. */
  keeper?: string;
}

/** Starts a fleet whose sessions are Pods of a cluster of the tests. */
export async function startPodFleet(settings: PodFleetOptions): Promise<PodFleet> {
  const { cluster: of, section, file, keeper, ...options } = settings;
  const directory = await mkdtemp(join(tmpdir(), 'sf-pods-'));
  const keeperImage = await importKeeper(keeper ?? (await keeperPath()));
  const cluster = await startCluster({ nodes: [ROOMY], ...of });
  const account = await cluster.tokenFor(WORKER_RULES);
  const path = join(directory, 'config.json');
  const kubernetes = {
    ...{ namespace: cluster.namespace, keeper: { image: keeperImage }, pullPolicy: 'Never' },
    api: { server: cluster.server.url, caFile: cluster.caFile, tokenFile: account.tokenFile },
    ...section,
  };
  await writeFile(path, JSON.stringify({ ...file, kubernetes }));
  const env = { SHELLFLEET_CONFIG: path, SHELLFLEET_POLICIES: 'kubernetes', ...options.env };
  const stack = await startFleet({ slots: 100, ...options, env }).catch(async (error: unknown) => {
    await cluster.close();
    throw error;
  });
  return {
    cluster,
    stack,
    async [Symbol.asyncDispose]() {
      try {
        await stack[Symbol.asyncDispose]();
      } finally {
        await cluster.close();
        await rm(directory, { recursive: true, force: true });
      }
    },
  };
}

/** Makes an image of one program, `/keeper`. Equal programs share one. */
async function importKeeper(program: string): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(program))
    .digest('hex')
    .slice(0, 12);
  const image = `shellfleet-test-keeper:${digest}`;
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  if (
    await docker
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      )
  )
    return image;
  const directory = await mkdtemp(join(tmpdir(), `sf-keeper-${randomBytes(2).toString('hex')}`));
  try {
    await copyFile(program, join(directory, 'keeper'));
    const tar = spawn('tar', ['--create', '--directory', directory, 'keeper']);
    const progress = await docker.importImage(tar.stdout, { repo: 'shellfleet-test-keeper', tag: digest });
    await new Promise<void>((resolve, reject) =>
      docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
    );
    return image;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
