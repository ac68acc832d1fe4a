import type { ContainerCreateOptions } from 'dockerode';
import type { Container } from '../api-server/pod-schema.ts';
import { amountOf } from '../api-server/quantity.ts';
import type { Pod } from './pod-status.ts';

/** What a container gets from its node. */
export interface FromNode {
  /** Bind mounts, in the form `source:target:options`. */
  binds: string[];
  /** Options of the file systems in memory, by mount path. */
  tmpfs: Record<string, string>;
  network: string;
  podIp: string;
  labels: Record<string, string>;
  /** Bound on processes. Undefined: none. */
  podPidsLimit: number | undefined;
  /** Variables that the kubelet adds. */
  env: Record<string, string>;
}

const MIN_SHARES = 2;
const CPU_PERIOD = 100_000;

/** Translates a container of a Pod into the options of the Docker engine. */
export function toCreateOptions(pod: Pod, container: Container, node: FromNode): ContainerCreateOptions {
  const env = environmentOf(pod, container, node);
  const expanded = (words: readonly string[]) => words.map((word) => expand(word, env));
  return {
    Image: container.image ?? '',
    ...(container.command && { Entrypoint: expanded(container.command) }),
    ...((container.args || container.command) && { Cmd: expanded(container.args ?? []) }),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(container.workingDir && { WorkingDir: container.workingDir }),
    Hostname: pod.spec.hostname ?? pod.metadata.name.slice(0, 63),
    ...userOf(pod, container),
    OpenStdin: container.stdin ?? false,
    Tty: container.tty ?? false,
    Labels: {
      ...node.labels,
      'io.kubernetes.pod.namespace': pod.metadata.namespace,
      'io.kubernetes.pod.name': pod.metadata.name,
      'io.kubernetes.pod.uid': pod.metadata.uid,
      'io.kubernetes.container.name': container.name,
    },
    HostConfig: { ...hostConfigOf(pod, container, node), NetworkMode: node.network },
    NetworkingConfig: { EndpointsConfig: { [node.network]: { IPAMConfig: { IPv4Address: node.podIp } } } },
  };
}

function hostConfigOf(
  pod: Pod,
  container: Container,
  node: FromNode,
): NonNullable<ContainerCreateOptions['HostConfig']> {
  const security = container.securityContext ?? {};
  const seccomp = security.seccompProfile ?? pod.spec.securityContext.seccompProfile;
  const { limits = {}, requests = {} } = container.resources;
  const memory = Math.ceil(amountOf(limits.memory));
  const { fsGroup, supplementalGroups = [] } = pod.spec.securityContext;
  return {
    Binds: node.binds,
    Tmpfs: node.tmpfs,
    GroupAdd: [...supplementalGroups, ...(fsGroup === undefined ? [] : [fsGroup])].map(String),
    CapAdd: security.capabilities?.add ?? [],
    CapDrop: security.capabilities?.drop ?? [],
    Privileged: security.privileged ?? false,
    ReadonlyRootfs: security.readOnlyRootFilesystem ?? false,
    SecurityOpt: [
      ...(security.allowPrivilegeEscalation === false ? ['no-new-privileges'] : []),
      // The default of a kubelet is no filter; RuntimeDefault is what the engine does by itself.
      ...(seccomp === undefined || seccomp.type === 'Unconfined' ? ['seccomp=unconfined'] : []),
    ],
    // A Pod has no swap: the bound of both together is that of memory.
    ...(memory > 0 && { Memory: memory, MemorySwap: memory }),
    ...(limits.cpu !== undefined && {
      CpuPeriod: CPU_PERIOD,
      CpuQuota: Math.max(1_000, Math.ceil(amountOf(limits.cpu) * CPU_PERIOD)),
    }),
    CpuShares: Math.max(MIN_SHARES, Math.floor(amountOf(requests.cpu) * 1_024)),
    ...(node.podPidsLimit !== undefined && { PidsLimit: node.podPidsLimit }),
    // A kubelet gives Guaranteed Pods -997. An engine in a virtual machine may be unable to.
    OomScoreAdj: { Guaranteed: 0, Burstable: 500 }[pod.status.qosClass ?? ''] ?? 1_000,
    ShmSize: 64 * 1024 * 1024,
    Init: false,
    RestartPolicy: { Name: 'no' },
  };
}

function userOf(pod: Pod, { securityContext = {} }: Container): { User?: string } {
  const { runAsUser = pod.spec.securityContext.runAsUser, runAsGroup = pod.spec.securityContext.runAsGroup } =
    securityContext;
  if (runAsUser === undefined) return {};
  return { User: runAsGroup === undefined ? String(runAsUser) : `${runAsUser}:${runAsGroup}` };
}

/** Returns the variables of a container. Each may use those before it. */
function environmentOf(pod: Pod, { env = [] }: Container, node: FromNode): Record<string, string> {
  const variables: Record<string, string> = { ...node.env };
  for (const { name, value = '', valueFrom } of env)
    variables[name] = valueFrom ? fieldOf(pod, valueFrom.fieldRef?.fieldPath, node) : expand(value, variables);
  return variables;
}

function fieldOf({ metadata, spec }: Pod, path: string | undefined, { podIp }: FromNode): string {
  const known: Record<string, string | undefined> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'status.podIP': podIp,
  };
  const value = known[path ?? ''];
  if (value === undefined) throw new Error(`the kubelet of the tests has no value for the variable from ${path}`);
  return value;
}

/** Replaces `$(NAME)` by the variable if there is one, and `$$` by `$`, as a kubelet does. */
export function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (whole, name: string | undefined) =>
    name === undefined ? '$' : (variables[name] ?? whole),
  );
}
