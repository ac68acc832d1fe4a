import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { amountOf } from '../api-server/quantity.ts';
import { disruption } from './pod-status.ts';
import type { PodWorker } from './pod-worker.ts';

const run = promisify(execFile);

/** Ends the Pods whose files on the disk are more than their limits allow, as a kubelet finds by looking. */
export async function evictOverLimits(workers: readonly PodWorker[]): Promise<void> {
  for (const worker of workers) {
    const message = await overLimit(worker);
    if (message !== undefined) evict(worker, message);
  }
}

/** Evicts a Pod for want of a resource of its node. A kubelet gives it no time. */
export function evict(worker: PodWorker, message: string): void {
  const condition = disruption('TerminationByKubelet', message);
  worker.end({ reason: 'Evicted', message, condition, graceSeconds: 0 });
}

async function overLimit(worker: PodWorker): Promise<string | undefined> {
  const { current, volumes } = worker;
  if (!volumes || !current) return undefined;
  const layer = await current.writableLayer().catch(() => undefined);
  const paths = volumes.disks.map(({ path }) => path);
  const used = await diskUsage(layer === undefined ? paths : [...paths, layer]);
  let total = layer === undefined ? 0 : (used.get(layer) ?? 0);
  // The message of each kind ends with a blank in the real kubelet.
  for (const { name, path, sizeLimit } of volumes.disks) {
    total += used.get(path) ?? 0;
    if (sizeLimit !== undefined && (used.get(path) ?? 0) > amountOf(sizeLimit))
      return `Usage of EmptyDir volume "${name}" exceeds the limit "${sizeLimit}". `;
  }
  const [container] = worker.pod.spec.containers;
  const limit = container?.resources.limits?.['ephemeral-storage'];
  if (limit === undefined) return undefined;
  if (layer !== undefined && (used.get(layer) ?? 0) > amountOf(limit))
    return `Container ${container?.name} exceeded its local ephemeral storage limit "${limit}". `;
  if (total > amountOf(limit))
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. `;
  return undefined;
}

/** Returns the bytes that directories take on the disk. Files that go meanwhile are not counted. */
async function diskUsage(paths: readonly string[]): Promise<Map<string, number>> {
  if (paths.length === 0) return new Map();
  const { stdout } = await run('du', ['--summarize', '--block-size=1', ...paths]).catch(
    (error) => error as { stdout: string },
  );
  return new Map(
    stdout
      .split('\n')
      .map((line) => line.split('\t'))
      .filter((fields): fields is [string, string] => fields.length === 2)
      .map(([bytes, path]) => [path, Number(bytes)]),
  );
}
