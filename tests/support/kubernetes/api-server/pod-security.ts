import type { Container, PodSpec } from './pod-schema.ts';

/** Finding of one check of the Pod Security Standards: its reason and detail, as the admission plugin writes them. */
type Finding = [reason: string, detail: string];

const SYSCTLS = new Set(
  `kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range
  net.ipv4.ip_unprivileged_port_start net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time
  net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_rmem
  net.ipv4.tcp_wmem`.split(/\s+/),
);
const SELINUX_TYPES = new Set([
  undefined,
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]);
const VOLUMES = new Set(
  'configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret'.split(' '),
);
const APPARMOR_KEY = 'container.apparmor.security.beta.kubernetes.io/';

/**
 * Lists why the level `restricted` of the Pod Security Standards refuses a Pod, in the order and words of the admission
 * plugin. Kubernetes 1.35 lets Pods with `hostUsers: false` run as root. Earlier versions and this server do not.
 */
export function restrictedViolations(spec: PodSpec, annotations: Record<string, string> = {}): string | undefined {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  // The checks of the level `baseline` come first, without those that `restricted` replaces.
  const findings = [
    appArmor(spec, containers, annotations),
    hostNamespaces(spec),
    hostPorts(containers),
    probeHosts(containers),
    privileged(containers),
    seLinux(spec, containers),
    sysctls(spec),
    windowsHostProcess(spec, containers),
    privilegeEscalation(containers),
    capabilities(containers),
    procMount(containers),
    volumes(spec),
    runAsNonRoot(spec, containers),
    runAsUser(spec, containers),
    seccomp(spec, containers),
  ].filter((finding) => finding !== undefined);
  if (findings.length === 0) return undefined;
  return `violates PodSecurity "restricted:latest": ${findings.map(([reason, detail]) => `${reason} (${detail})`).join(', ')}`;
}

const quote = (names: Iterable<string>) => [...names].map((name) => `"${name}"`).join(', ');
const sorted = (names: Iterable<string>) => [...new Set(names)].toSorted();
const plural = (one: string, many: string, { length }: { length: number }) => (length === 1 ? one : many);
const named = (names: readonly string[]) => `${plural('container', 'containers', names)} ${quote(names)}`;

function namesOf(containers: readonly Container[], isBad: (container: Container) => boolean): string[] {
  return containers.filter(isBad).map(({ name }) => name);
}

/** Names who has set a bad value: the Pod, containers, or both. */
function setters(byPod: boolean, containers: readonly string[]): string | undefined {
  const all = [...(byPod ? ['pod'] : []), ...(containers.length > 0 ? [named(containers)] : [])];
  return all.length === 0 ? undefined : all.join(' and ');
}

function appArmor(spec: PodSpec, containers: readonly Container[], annotations: Record<string, string>) {
  const isBad = (type: string | undefined) => type !== undefined && !['RuntimeDefault', 'Localhost'].includes(type);
  const typeOf = ({ securityContext }: Container | PodSpec) => securityContext?.appArmorProfile?.type;
  const bad = containers.filter((container) => isBad(typeOf(container)));
  const written = Object.entries(annotations)
    .filter(([key, value]) => key.startsWith(APPARMOR_KEY) && !/^(?:|runtime\/default|localhost\/.*)$/.test(value))
    .map(([key, value]) => `${key}="${value}"`);
  const types = sorted([spec, ...bad].map(typeOf).filter((type) => type !== undefined && isBad(type)) as string[]);
  const values = [...types, ...written.toSorted()];
  if (values.length === 0) return undefined;
  const by = setters(
    isBad(typeOf(spec)),
    bad.map(({ name }) => name),
  );
  const who = [by, written.length > 0 ? plural('annotation', 'annotations', written) : undefined];
  return [
    plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', values),
    `${who.filter((one) => one !== undefined).join(' and ')} must not set AppArmor profile type to ${quote(values)}`,
  ] satisfies Finding;
}

function hostNamespaces({ hostNetwork, hostPID, hostIPC }: PodSpec): Finding | undefined {
  const used = Object.entries({ hostNetwork, hostPID, hostIPC }).filter(([, isOn]) => isOn === true);
  if (used.length === 0) return undefined;
  return ['host namespaces', used.map(([name]) => `${name}=true`).join(', ')];
}

function hostPorts(containers: readonly Container[]): Finding | undefined {
  const portsOf = ({ ports = [] }: Container) => ports.map(({ hostPort = 0 }) => hostPort).filter((port) => port !== 0);
  const bad = namesOf(containers, (container) => portsOf(container).length > 0);
  if (bad.length === 0) return undefined;
  const ports = sorted(containers.flatMap(portsOf).map(String));
  const verb = plural('uses', 'use', bad);
  return ['hostPort', `${named(bad)} ${verb} ${plural('hostPort', 'hostPorts', ports)} ${ports.join(', ')}`];
}

function probeHosts(containers: readonly Container[]): Finding | undefined {
  const hostsOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container) =>
    [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
      .flatMap((handler) => {
        const { httpGet, tcpSocket } = (handler ?? {}) as Record<string, { host?: string } | undefined>;
        return [httpGet?.host, tcpSocket?.host];
      })
      .filter((host) => host !== undefined && host !== '') as string[];
  const bad = sorted(namesOf(containers, (container) => hostsOf(container).length > 0));
  if (bad.length === 0) return undefined;
  const hosts = sorted(containers.flatMap(hostsOf));
  const what = plural('probe or lifecycle host', 'probe or lifecycle hosts', hosts);
  return ['probe or lifecycle host', `${named(bad)} ${plural('uses', 'use', bad)} ${what} ${quote(hosts)}`];
}

function privileged(containers: readonly Container[]): Finding | undefined {
  const bad = namesOf(containers, ({ securityContext }) => securityContext?.privileged === true);
  return bad.length === 0 ? undefined : ['privileged', `${named(bad)} must not set securityContext.privileged=true`];
}

function procMount(containers: readonly Container[]): Finding | undefined {
  const isBad = ({ securityContext }: Container) => !['Default', undefined].includes(securityContext?.procMount);
  const bad = namesOf(containers, isBad);
  if (bad.length === 0) return undefined;
  const values = sorted(containers.filter(isBad).map(({ securityContext }) => securityContext?.procMount ?? ''));
  return ['procMount', `${named(bad)} must not set securityContext.procMount to ${quote(values)}`];
}

function seLinux(spec: PodSpec, containers: readonly Container[]): Finding | undefined {
  const optionsOf = ({ securityContext }: Container | PodSpec) => securityContext?.seLinuxOptions;
  const isBad = (one: Container | PodSpec) => {
    const { type, user = '', role = '' } = optionsOf(one) ?? {};
    return !SELINUX_TYPES.has(type) || user !== '' || role !== '';
  };
  const by = setters(isBad(spec), namesOf(containers, isBad));
  if (by === undefined) return undefined;
  const all = [spec, ...containers].map((one) => optionsOf(one) ?? {});
  const types = sorted(all.map(({ type }) => type ?? '').filter((type) => !SELINUX_TYPES.has(type)));
  const data = [
    ...(types.length > 0 ? [`${plural('type', 'types', types)} ${quote(types)}`] : []),
    ...(all.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
    ...(all.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
  ];
  return ['seLinuxOptions', `${by} set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`];
}

function sysctls({ securityContext }: PodSpec): Finding | undefined {
  const bad = (securityContext.sysctls ?? []).map(({ name }) => name).filter((name) => !SYSCTLS.has(name));
  return bad.length === 0 ? undefined : ['forbidden sysctls', bad.join(', ')];
}

function windowsHostProcess(spec: PodSpec, containers: readonly Container[]): Finding | undefined {
  const isBad = ({ securityContext }: Container | PodSpec) => securityContext?.windowsOptions?.hostProcess === true;
  const by = setters(isBad(spec), namesOf(containers, isBad));
  if (by === undefined) return undefined;
  return ['hostProcess', `${by} must not set securityContext.windowsOptions.hostProcess=true`];
}

function privilegeEscalation(containers: readonly Container[]): Finding | undefined {
  const bad = namesOf(containers, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (bad.length === 0) return undefined;
  return ['allowPrivilegeEscalation != false', `${named(bad)} must set securityContext.allowPrivilegeEscalation=false`];
}

function capabilities(containers: readonly Container[]): Finding | undefined {
  const of = ({ securityContext }: Container) => securityContext?.capabilities;
  const added = (container: Container) => (of(container)?.add ?? []).filter((name) => name !== 'NET_BIND_SERVICE');
  const keeping = namesOf(containers, (container) => of(container)?.drop?.includes('ALL') !== true);
  const adding = namesOf(containers, (container) => added(container).length > 0);
  const names = quote(sorted(containers.flatMap(added)));
  const details = [
    ...(keeping.length > 0 ? [`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`] : []),
    ...(adding.length > 0 ? [`${named(adding)} must not include ${names} in securityContext.capabilities.add`] : []),
  ];
  return details.length === 0 ? undefined : ['unrestricted capabilities', details.join('; ')];
}

function volumes(spec: PodSpec): Finding | undefined {
  const typeOf = (volume: object) => Object.keys(volume).find((key) => key !== 'name') ?? 'unknown';
  const bad = (spec.volumes ?? []).filter((volume) => !VOLUMES.has(typeOf(volume)));
  if (bad.length === 0) return undefined;
  const names = bad.map(({ name }) => name);
  const types = sorted(bad.map(typeOf));
  const what = plural('restricted volume type', 'restricted volume types', types);
  const who = `${plural('volume', 'volumes', bad)} ${quote(names)} ${plural('uses', 'use', bad)}`;
  return ['restricted volume types', `${who} ${what} ${quote(types)}`];
}

function runAsNonRoot(spec: PodSpec, containers: readonly Container[]): Finding | undefined {
  const reason = 'runAsNonRoot != true';
  const ofPod = spec.securityContext.runAsNonRoot;
  const explicit = namesOf(containers, ({ securityContext }) => securityContext?.runAsNonRoot === false);
  const by = setters(ofPod === false, explicit);
  if (by !== undefined) return [reason, `${by} must not set securityContext.runAsNonRoot=false`];
  const implicit = namesOf(containers, ({ securityContext }) => (securityContext?.runAsNonRoot ?? ofPod) !== true);
  if (implicit.length === 0) return undefined;
  return [reason, `pod or ${named(implicit)} must set securityContext.runAsNonRoot=true`];
}

function runAsUser(spec: PodSpec, containers: readonly Container[]): Finding | undefined {
  const isRoot = ({ securityContext }: Container | PodSpec) => securityContext?.runAsUser === 0;
  const by = setters(isRoot(spec), namesOf(containers, isRoot));
  return by === undefined ? undefined : ['runAsUser=0', `${by} must not set runAsUser=0`];
}

function seccomp(spec: PodSpec, containers: readonly Container[]): Finding | undefined {
  const typeOf = ({ securityContext }: Container | PodSpec) => securityContext?.seccompProfile?.type;
  const isGood = (type: string | undefined) => type === 'RuntimeDefault' || type === 'Localhost';
  const isBad = (one: Container | PodSpec) => typeOf(one) !== undefined && !isGood(typeOf(one));
  const by = setters(isBad(spec), namesOf(containers, isBad));
  if (by !== undefined) {
    const values = sorted([spec, ...containers].filter(isBad).map((one) => typeOf(one) ?? ''));
    return ['seccompProfile', `${by} must not set securityContext.seccompProfile.type to ${quote(values)}`];
  }
  const implicit = namesOf(containers, (container) => !isGood(typeOf(container) ?? typeOf(spec)));
  if (implicit.length === 0) return undefined;
  const wanted = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"';
  return ['seccompProfile', `pod or ${named(implicit)} must set ${wanted}`];
}
