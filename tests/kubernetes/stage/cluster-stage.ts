import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Fleet, type SessionSpec } from '@shellfleet/client';
import { z } from 'zod';
import { freePort } from '../../support/redis-process.ts';
import { Kubectl } from './kubectl.ts';
import { countsForQuota, listSessionPods, podSchema } from './pods.ts';
import { PortForward } from './port-forward.ts';
import type { KubernetesStage } from './stage.ts';

/** Names that the release `shellfleet` of the chart gives. */
const WORKERS = 'deployment/shellfleet-worker';
const REDIS = 'service/shellfleet-redis';
const SECRETS = { redis: 'shellfleet-redis', keys: 'shellfleet-keys' };
const QUOTA = 'test-quota';
const REPLACED_WITHIN = '--timeout=300s';
const QUOTA_WITHIN_MS = 30_000;
/** Small enough for some sessions at once on one node with two processors. */
const SPEC: SessionSpec = { policy: 'kubernetes', limits: { cpus: 0.25, memoryBytes: 256 * 2 ** 20 } };

/** What `npm run test:kubernetes` has installed. */
const installationSchema = z.object({
  kubectl: z.string(),
  kubeconfig: z.string(),
  namespace: z.string(),
  impossible: z.record(z.string(), z.string()),
});
export type Installation = z.infer<typeof installationSchema>;

const quotaSchema = z.object({ status: z.object({ used: z.record(z.string(), z.string()).default({}) }).loose() });
const secretSchema = z.object({ data: z.record(z.string(), z.string()) });

export async function readInstallation(path: string): Promise<Installation> {
  return installationSchema.parse(JSON.parse(await readFile(path, 'utf8')));
}

/** Opens the stage of a cluster into which the chart is installed. The fleet is reached through a forwarded port. */
export async function openClusterStage({
  kubectl: program,
  kubeconfig,
  namespace,
  impossible,
}: Installation): Promise<KubernetesStage> {
  const kubectl = new Kubectl(program, kubeconfig, namespace);
  const secret = async (name: string, key: string) => {
    const { data } = await kubectl.get(secretSchema, 'secret', name);
    return Buffer.from(data[key] ?? '', 'base64').toString();
  };
  const port = await freePort();
  const forward = await PortForward.open(kubectl, REDIS, port, 6379);
  const fleet = await Fleet.connect({
    redisUrl: `redis://default:${await secret(SECRETS.redis, 'password')}@127.0.0.1:${port}/0`,
    namespace: 'shellfleet',
    sealKeys: [await secret(SECRETS.keys, 'seal-key')],
  }).catch(async (error: unknown) => {
    await forward[Symbol.asyncDispose]();
    throw error;
  });
  return {
    ...{ fleet, kubectl, impossible, spec: SPEC },
    async setPodQuota(pods) {
      await kubectl.run(['delete', 'quota', QUOTA, '--ignore-not-found']);
      if (pods === undefined) return;
      const all = (await kubectl.list(podSchema, 'pods')).filter(countsForQuota);
      const others = all.length - (await listSessionPods(kubectl)).filter(countsForQuota).length;
      await kubectl.run(['create', 'quota', QUOTA, `--hard=pods=${others + pods}`]);
      // Until its controller has counted, a quota refuses everything in other words.
      for (const until = Date.now() + QUOTA_WITHIN_MS; Date.now() < until; await delay(500)) {
        const { status } = await kubectl.get(quotaSchema, 'quota', QUOTA);
        if (status.used.pods !== undefined) return;
      }
      throw new Error('the cluster does not count what is used of a quota');
    },
    async rollOut() {
      await kubectl.run(['rollout', 'restart', WORKERS]);
      await kubectl.run(['rollout', 'status', WORKERS, REPLACED_WITHIN]);
    },
    async killWorker(hostId) {
      await kubectl.run(['delete', 'pod', hostId, '--grace-period=0', '--force', '--wait=false']);
    },
    async [Symbol.asyncDispose]() {
      await fleet.close();
      await forward[Symbol.asyncDispose]();
    },
  };
}
