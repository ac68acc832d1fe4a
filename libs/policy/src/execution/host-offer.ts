import {
  type FieldIssue,
  type HostOffer,
  type NetworkAccess,
  type ResolvedSessionSpec,
  refusedSandbox,
  type SandboxMode,
} from '@shellfleet/protocol';
import { checkDockerOffer } from './docker.ts';
import { checkHostOffer } from './host.ts';
import { checkKubernetesOffer } from './kubernetes.ts';

const NO_CLUSTER: NonNullable<HostOffer['cluster']> = {
  ...{ runtimeClasses: [], resources: [], unenforced: [], egress: false },
};

/**
 * Returns the fields that a host with this offer refuses and another host may accept. Fields that every host refuses
 * are left out: a host takes such a session, and then ends its commands with the refusal.
 */
export function refusedByOffer(spec: ResolvedSessionSpec, offer: HostOffer, defaultImage: string): FieldIssue[] {
  if (refusedSandbox(spec).length > 0) return [];
  const { memoryBytes, cpus, pids, diskQuota, workspaces, controlGroups } = offer;
  const bounds = { memoryBytes, cpus, pids, diskQuota };
  const sandbox = {
    modes: offer.modes as SandboxMode[],
    networks: offer.networks as NetworkAccess[],
    hosts: offer.hosts,
  };
  const { images, ownUids, runtimes, redactFormats, kept, cluster = NO_CLUSTER } = offer;
  const users = offer.users as ('root' | 'image')[];
  if (spec.policy.type === 'kubernetes')
    return checkKubernetesOffer(spec, { cluster, images, defaultImage, sandbox, redactFormats });
  const both = { workspaces, bounds, sandbox, redactFormats };
  return spec.policy.type === 'docker'
    ? checkDockerOffer(spec, { ...both, images, defaultImage, users, ownUids, runtimes, kept })
    : checkHostOffer(spec, { ...both, controlGroups });
}
