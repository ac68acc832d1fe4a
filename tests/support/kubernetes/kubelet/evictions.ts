import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { amountOf } from '../api-server/quantity.ts';
import { disruption } from './pod-status.ts';
import type { PodWorker } from './pod-worker.ts';
import type { PodVolumes } from './volumes.ts';

const run = promisify(execFile);

/** Ends the Pods whose files on the disk are more than their limits allow, as a kubelet finds by looking. */
export async function evictOverLimits(workers: readonly PodWorker[]): Promise<void> {
  const running = await Promise.all(workers.map(findPlaces));
  const places = running.filter((place) => place !== undefined);
  const paths = places.flatMap(({ volumes, layer }) => [
    ...volumes.disks.map(({ path }) => path),
    ...(layer === undefined ? [] : [layer]),
  ]);
  const used = await diskUsage(paths);
  for (const place of places) {
    const message = overLimit(place, used);
    if (message !== undefined) evict(place.worker, message);
  }
}

/** Directories of a Pod that count for its limits. */
interface Places {
  worker: PodWorker;
  volumes: PodVolumes;
  /** Files that the container has written outside its volumes. */
  layer: string | undefined;
}

async function findPlaces(worker: PodWorker): Promise<Places | undefined> {
  const { current, volumes } = worker;
  if (!volumes || !current) return undefined;
  return { worker, volumes, layer: await current.writableLayer().catch(() => undefined) };
}

/** Evicts a Pod for want of a resource of its node. A kubelet gives it no time. */
export function evict(worker: PodWorker, message: string): void {
  const condition = disruption('TerminationByKubelet', message);
  worker.end({ reason: 'Evicted', message, condition, graceSeconds: 0 });
}

function overLimit({ worker, volumes, layer }: Places, used: ReadonlyMap<string, number>): string | undefined {
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
