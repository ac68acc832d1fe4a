import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Container, Volume } from '../api-server/pod-schema.ts';
import { amountOf } from '../api-server/quantity.ts';
import type { Pod } from './pod-status.ts';

/** Directories of a Pod on this machine. */
export interface PodVolumes {
  /** Mounts of a container: bind mounts, and file systems in memory by mount path. */
  mountsOf(container: Container): { binds: string[]; tmpfs: Record<string, string> };
  /** Directories on the disk with their bounds in bytes. */
  disks: { name: string; path: string; sizeLimit: string | undefined }[];
  /** File in which the container leaves its last message. */
  terminationLog(container: Container): string;
  remove(): Promise<void>;
}

export interface VolumeSources {
  /** Directories of the persistent volumes, by the names of the volumes. */
  claims: ReadonlyMap<string, string>;
  /** Servers of the cluster for names. */
  nameservers: readonly string[];
  /** Names of volumes in which nothing can be executed. They are in memory: the engine binds no such directory. */
  noexec: readonly string[];
  /** Copies the files of an image into a directory. */
  copyImage(image: string, directory: string): Promise<void>;
}

/** Makes the volumes of a Pod in a directory. */
export async function makeVolumes(
  pod: Pod,
  directory: string,
  { claims, nameservers, noexec, copyImage }: VolumeSources,
): Promise<PodVolumes> {
  const volumes = pod.spec.volumes ?? [];
  await mkdir(directory, { recursive: true });
  const { fsGroup } = pod.spec.securityContext;
  const places = new Map<string, string>();
  for (const volume of volumes) {
    const isUnbound = isInMemory(volume) || noexec.includes(volume.name);
    refuseUnknown(volume, pod, isUnbound);
    if (isUnbound) continue;
    const path = claims.get(volume.name) ?? join(directory, volume.name);
    await mkdir(path, { recursive: true });
    places.set(volume.name, path);
    if (volume.image) {
      await copyImage(volume.image.reference ?? '', path);
      continue;
    }
    // A directory that everybody may write in belongs to the group of the Pod, as do the files that are made in it.
    if (fsGroup !== undefined) await chown(path, 0, fsGroup);
    await chmod(path, fsGroup === undefined ? 0o777 : 0o2777);
  }
  const resolv = join(directory, 'resolv.conf');
  await writeFile(resolv, toResolvConf(pod, nameservers));
  const logs = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  for (const container of logs) {
    await writeFile(logOf(directory, container), '');
    await chmod(logOf(directory, container), 0o666);
  }
  return {
    mountsOf: (container) =>
      toMounts(container, pod, { places, noexec }, [
        `${resolv}:/etc/resolv.conf`,
        `${logOf(directory, container)}:${container.terminationMessagePath}`,
      ]),
    disks: volumes
      .filter((volume) => volume.emptyDir && places.has(volume.name))
      .map(({ name, emptyDir }) => ({ name, path: places.get(name) ?? '', sizeLimit: emptyDir?.sizeLimit })),
    terminationLog: (container) => logOf(directory, container),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

const logOf = (directory: string, { name }: Container) => join(directory, `${name}.termination-log`);

const isInMemory = ({ emptyDir }: Volume) => emptyDir?.medium === 'Memory';

const KNOWN = ['emptyDir', 'persistentVolumeClaim', 'ephemeral', 'image'];

function refuseUnknown(volume: Volume, { spec }: Pod, isUnbound: boolean): void {
  const source = Object.keys(volume).find((key) => key !== 'name');
  if (source === undefined || !KNOWN.includes(source))
    throw new Error(`the kubelet of the tests has no volumes of type ${source}`);
  if (!isUnbound) return;
  const mounts = [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ volumeMounts = [] }) =>
    volumeMounts.filter(({ name }) => name === volume.name),
  );
  if (mounts.length > 1 || mounts.some(({ subPath }) => subPath))
    throw new Error(`the kubelet of the tests mounts the volume ${volume.name} in memory once, and without a subPath`);
}

interface Places extends Pick<VolumeSources, 'noexec'> {
  /** Directories of the volumes by their names. */
  places: ReadonlyMap<string, string>;
}

function toMounts(container: Container, pod: Pod, { places, noexec }: Places, binds: readonly string[]) {
  const all = [...binds];
  const tmpfs: Record<string, string> = {};
  const { fsGroup } = pod.spec.securityContext;
  for (const { name, mountPath, readOnly, subPath = '' } of container.volumeMounts ?? []) {
    const place = places.get(name);
    const volume = pod.spec.volumes?.find((one) => one.name === name);
    if (place !== undefined) {
      all.push(`${join(place, subPath)}:${mountPath}:${readOnly || volume?.image ? 'ro' : 'rw'}`);
      continue;
    }
    const limit = volume?.emptyDir?.sizeLimit;
    const size = Math.floor(amountOf(limit ?? container.resources.limits?.memory));
    const group = fsGroup === undefined ? 'mode=0777' : `mode=2777,gid=${fsGroup}`;
    // A file system in memory of a kubelet allows programs and devices, other than the engine's.
    tmpfs[mountPath] =
      `${readOnly ? 'ro' : 'rw'},${noexec.includes(name) ? 'noexec' : 'exec'},suid,dev,${group}${size > 0 ? `,size=${size}` : ''}`;
  }
  return { binds: all, tmpfs };
}

/** Writes /etc/resolv.conf as the dnsPolicy of the Pod says. */
function toResolvConf({ metadata, spec: { dnsPolicy, dnsConfig } }: Pod, nameservers: readonly string[]): string {
  const domain = `${metadata.namespace}.svc.cluster.local svc.cluster.local cluster.local`;
  const isOfCluster = dnsPolicy.startsWith('ClusterFirst');
  const servers = [...(dnsPolicy === 'None' ? [] : nameservers), ...(dnsConfig?.nameservers ?? [])];
  const searches = [...(isOfCluster ? [domain] : []), ...(dnsConfig?.searches ?? [])];
  const options = [
    ...(isOfCluster ? ['ndots:5'] : []),
    ...(dnsConfig?.options ?? []).map(({ name, value }) => (value === undefined ? name : `${name}:${value}`)),
  ];
  return [
    ...(searches.length > 0 ? [`search ${searches.join(' ')}`] : []),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length > 0 ? [`options ${options.join(' ')}`] : []),
    '',
  ].join('\n');
}
