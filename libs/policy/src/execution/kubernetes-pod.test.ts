import { NETWORK_ACCESSES, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { cluster } from '../../test-support/cluster-settings.ts';
import { weakFields } from '../../test-support/pod-security.ts';
import { type ClusterSettings, planKubernetes } from './kubernetes.ts';
import { type PodManifest, type PodNames, podSelector, toClaim, toPod } from './kubernetes-pod.ts';
import { proxyVariables } from './proxy-variables.ts';
import { DEFAULT_SANDBOX_ALLOWANCES } from './sandbox-modes.ts';

const GIB = 2 ** 30;
const proxy = 'http://session:token@10.0.0.7:3128';
const names: PodNames = {
  name: 'sf-0123456789abcdef',
  labels: { fleet: 'f1', tenant: 't1', session: 's1', generation: 'g1', key: 'k1' },
  keeperProtocol: 15,
  owner: { name: 'shellfleet-f1', uid: 'u1' },
  linkKey: 'aa',
  linkPsk: 'bb',
  proxy,
};

function planOf(spec: object, settings: Partial<ClusterSettings> = {}) {
  return planKubernetes(sessionSpecSchema.parse({ policy: 'kubernetes', ...spec }), {
    ...{ images: 'any', defaultImage: 'registry.example/session:1', cluster: { ...cluster, ...settings } },
    sandbox: { ...DEFAULT_SANDBOX_ALLOWANCES, networks: NETWORK_ACCESSES },
  });
}
const podOf = (...args: Parameters<typeof planOf>) => toPod(planOf(...args), names);
const shellOf = (...args: Parameters<typeof planOf>) => podOf(...args).spec.containers[0];
const volumeOf = (name: string, ...args: Parameters<typeof planOf>) =>
  podOf(...args).spec.volumes.find((volume) => volume.name === name);

const QUANTITIES = { cpu: '1000m', memory: '536870912', 'ephemeral-storage': String(4 * GIB) };
const HARDENED = { privileged: false, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
const UNATTENDED = { stdin: false, tty: false, terminationMessagePolicy: 'File' };
const evictedAfter30s = (key: string) => ({
  ...{ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
});

describe('the manifest of a Pod', () => {
  test('is this for an empty spec', () => {
    expect(podOf({})).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'sf-0123456789abcdef',
        namespace: 'sessions',
        labels: {
          'app.kubernetes.io/managed-by': 'shellfleet',
          'shellfleet.dev/fleet': 'f1',
          'shellfleet.dev/tenant': 't1',
          'shellfleet.dev/session': 's1',
          'shellfleet.dev/generation': 'g1',
          'shellfleet.dev/key': 'k1',
          'shellfleet.dev/network': 'restricted',
        },
        annotations: {
          'shellfleet.dev/keeper-protocol': '15',
          'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
          'karpenter.sh/do-not-disrupt': 'true',
        },
        ownerReferences: [
          { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'shellfleet-f1', uid: 'u1', controller: true },
        ],
      },
      spec: {
        restartPolicy: 'Never',
        activeDeadlineSeconds: 172_810,
        terminationGracePeriodSeconds: 30,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        hostname: 'session',
        dnsPolicy: 'None',
        dnsConfig: { nameservers: ['127.0.0.1'] },
        tolerations: [evictedAfter30s('not-ready'), evictedAfter30s('unreachable')],
        securityContext: {
          ...{ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 },
          fsGroupChangePolicy: 'OnRootMismatch',
          seccompProfile: { type: 'RuntimeDefault' },
        },
        initContainers: [
          {
            ...{ name: 'keeper', image: 'registry.example/keeper@sha256:0', imagePullPolicy: 'IfNotPresent' },
            command: ['/keeper', '--install', '/sf/keeper'],
            ...UNATTENDED,
            resources: { requests: QUANTITIES, limits: QUANTITIES },
            securityContext: { ...HARDENED, readOnlyRootFilesystem: true },
            volumeMounts: [{ name: 'sf', mountPath: '/sf' }],
          },
        ],
        containers: [
          {
            ...{ name: 'shell', image: 'registry.example/session:1', imagePullPolicy: 'IfNotPresent' },
            command: ['/sf/keeper', 'tcp:7443'],
            env: [
              { name: 'HOME', value: '/workspace' },
              { name: 'SF_LINK_KEY', value: 'aa' },
              { name: 'SF_LINK_PSK', value: 'bb' },
              { name: 'SF_UNCLAIMED_MS', value: '3600000' },
            ],
            workingDir: '/workspace',
            ports: [{ name: 'keeper', containerPort: 7443, protocol: 'TCP' }],
            ...UNATTENDED,
            resources: { requests: QUANTITIES, limits: QUANTITIES },
            securityContext: { ...HARDENED, readOnlyRootFilesystem: false },
            volumeMounts: [
              { name: 'sf', mountPath: '/sf', readOnly: true },
              { name: 'run', mountPath: '/run/shellfleet' },
              { name: 'workspace', mountPath: '/workspace' },
            ],
          },
        ],
        volumes: [
          { name: 'sf', emptyDir: { sizeLimit: '16777216' } },
          { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: '16777216' } },
          { name: 'workspace', emptyDir: { sizeLimit: String(2 * GIB) } },
        ],
      },
    });
  });

  test('has no tenant or session while it waits in a pool', () => {
    const { labels } = toPod(planOf({}), { ...names, labels: { fleet: 'f1', key: 'k1', pool: 'p1' } }).metadata;
    expect(Object.keys(labels).map((name) => name.split('/')[1])).toEqual([
      'managed-by',
      'fleet',
      'key',
      'pool',
      'network',
    ]);
  });

  test('makes root and workspace read-only in the mode read-only, but not /tmp', () => {
    const spec = { sandbox: { mode: 'read-only' } };
    expect(shellOf(spec).securityContext.readOnlyRootFilesystem).toBe(true);
    expect(shellOf(spec).volumeMounts.slice(2)).toEqual([
      { name: 'workspace', mountPath: '/workspace', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ]);
    expect(volumeOf('tmp', spec)).toEqual({ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '67108864' } });
    expect(volumeOf('tmp', { ...spec, limits: { memoryBytes: 64 * 2 ** 20 } })).toMatchObject({
      emptyDir: { sizeLimit: '33554432' },
    });
  });

  test('makes only the root read-only for readOnlyRootfs', () => {
    const shell = shellOf({ policy: { type: 'kubernetes', readOnlyRootfs: true } });
    expect(shell.securityContext.readOnlyRootFilesystem).toBe(true);
    expect(shell.volumeMounts).toContainEqual({ name: 'workspace', mountPath: '/workspace' });
  });

  test('has requests that equal the limits, also of other resources', () => {
    const limits = { memoryBytes: GIB, cpus: 0.0129, diskBytes: 5 * GIB, resources: { 'nvidia.com/gpu': 2 } };
    const pod = podOf({ limits }, { resources: ['nvidia.com/gpu'] });
    const quantities = { cpu: '12m', memory: String(GIB), 'ephemeral-storage': String(5 * GIB) };
    const withCounts = { ...quantities, 'nvidia.com/gpu': '2' };
    expect(pod.spec.containers[0].resources).toEqual({ requests: withCounts, limits: withCounts });
    expect(pod.spec.initContainers?.[0]?.resources).toEqual({ requests: quantities, limits: quantities });
  });

  test.each([
    [0.01, '10m'],
    [0.29, '290m'],
    [0.0109, '10m'],
    [1.001, '1001m'],
    [1.1, '1100m'],
  ])('counts %d processors in whole thousandths, never more', (cpus, quantity) => {
    expect(shellOf({ limits: { cpus } }).resources.limits.cpu).toBe(quantity);
  });

  test('escapes in the words of the shell what the kubelet would replace', () => {
    const shell = ['/bin/bash', '-c', 'echo $(SF_LINK_PSK) $HOME $$'];
    expect(shellOf({ shell }).command.slice(2)).toEqual(['/bin/bash', '-c', 'echo $$(SF_LINK_PSK) $$HOME $$$$']);
  });

  test('gives names of the cluster only to a session with a whole network', () => {
    const { spec, metadata } = podOf({ sandbox: { network: 'full' } });
    expect([spec.dnsPolicy, spec.dnsConfig]).toEqual(['ClusterFirst', undefined]);
    expect(metadata.labels['shellfleet.dev/network']).toBe('full');
    const limited = podOf({ sandbox: { network: 'limited' } }, { egress: { host: 'e', port: 1 } });
    const { env } = limited.spec.containers[0];
    expect(env?.slice(4)).toEqual(Object.entries(proxyVariables(proxy)).map(([name, value]) => ({ name, value })));
    expect([limited.spec.dnsPolicy, limited.metadata.labels['shellfleet.dev/network']]).toEqual(['None', 'limited']);
  });

  test.each<[string, Partial<ClusterSettings>, Partial<PodManifest['spec']>]>([
    ['a service account', { serviceAccount: 'nobody' }, { serviceAccountName: 'nobody' }],
    ['pull secrets', { pullSecrets: ['a', 'b'] }, { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }],
    ['a node selector', { nodeSelector: { pool: 'shells' } }, { nodeSelector: { pool: 'shells' } }],
    ['a priority class', { priorityClass: 'low' }, { priorityClassName: 'low' }],
    ['a user namespace', { userNamespaces: true }, { hostUsers: false }],
  ])('has %s that the operator sets', (_what, settings, fields) => {
    expect(podOf({}, settings).spec).toMatchObject(fields);
    expect(Object.keys(podOf({}).spec)).not.toEqual(expect.arrayContaining(Object.keys(fields)));
  });

  test('has the tolerations of the operator after its own', () => {
    const toleration = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' } as const;
    expect(podOf({}, { tolerations: [toleration] }).spec.tolerations.slice(2)).toEqual([toleration]);
  });

  test('has the RuntimeClass, user, directory and port that were planned', () => {
    const spec = { policy: { type: 'kubernetes', runtimeClass: 'gvisor' }, user: '7:8', cwd: '/srv' };
    const { runtimeClassName, securityContext, containers } = podOf(spec, { runtimeClasses: ['gvisor'], port: 9 }).spec;
    expect(runtimeClassName).toBe('gvisor');
    expect(securityContext).toMatchObject({ runAsUser: 7, runAsGroup: 8, fsGroup: 8 });
    expect(containers[0]).toMatchObject({ workingDir: '/srv', ports: [{ containerPort: 9 }] });
    expect(containers[0].command).toEqual(['/sf/keeper', 'tcp:9']);
  });

  test('gets the keeper by an image volume where the operator wants that', () => {
    const keeper = { image: 'registry.example/keeper:1', volume: 'image' } as const;
    const pod = podOf({}, { keeper, pullPolicy: 'Never' });
    expect(pod.spec.initContainers).toBeUndefined();
    expect(pod.spec.volumes[0]).toEqual({ name: 'sf', image: { reference: keeper.image, pullPolicy: 'Never' } });
    expect(pod.spec.containers[0].imagePullPolicy).toBe('Never');
  });

  test('has a claim for its workspace, or a template of one', () => {
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      resources: { requests: { storage: String(GIB) } },
    };
    const workspace = { type: 'ephemeral', sizeBytes: GIB, storageClass: 'fast' } as const;
    expect(volumeOf('workspace', {}, { workspace })).toEqual({
      name: 'workspace',
      ephemeral: { volumeClaimTemplate: { spec } },
    });
    const claimed = { workspace: { ...workspace, type: 'persistentVolumeClaim' as const } };
    expect(volumeOf('workspace', {}, claimed)).toEqual({
      name: 'workspace',
      persistentVolumeClaim: { claimName: names.name },
    });
    const { annotations, ...metadata } = podOf({}).metadata;
    expect(toClaim(planOf({}, claimed), names)).toEqual({
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec },
    });
    expect(toClaim(planOf({}, { workspace }), names)).toBeUndefined();
  });

  test('is found by the labels of its fleet', () => {
    expect(podSelector({ fleet: 'f1', session: 's1' })).toBe(
      'app.kubernetes.io/managed-by=shellfleet,shellfleet.dev/fleet=f1,shellfleet.dev/session=s1',
    );
  });
});

describe('the security of a Pod', () => {
  const specs = [
    {},
    { sandbox: { mode: 'read-only' } },
    { sandbox: { network: 'full' } },
    { sandbox: { network: 'limited' } },
    { user: '7', limits: { resources: { 'nvidia.com/gpu': 1 } } },
  ];
  const settings: Partial<ClusterSettings>[] = [
    {},
    { userNamespaces: true, keeper: { image: 'k', volume: 'image' }, serviceAccount: 's', priorityClass: 'p' },
    { workspace: { type: 'ephemeral', sizeBytes: GIB } },
    { workspace: { type: 'persistentVolumeClaim', sizeBytes: GIB } },
  ];
  const whole = { egress: { host: 'e', port: 1 }, resources: ['nvidia.com/gpu'] };

  test('is that of the Pod Security standard `restricted`, for every spec and setting', () => {
    for (const spec of specs)
      for (const more of settings) expect(weakFields(podOf(spec, { ...whole, ...more }))).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ['hostNetwork', true, 'hostNetwork'],
    ['hostPID', true, 'hostPID'],
    ['hostIPC', true, 'hostIPC'],
    ['hostUsers', true, 'hostUsers'],
    ['shareProcessNamespace', true, 'shareProcessNamespace'],
    ['nodeName', 'n1', 'nodeName'],
    ['ephemeralContainers', [], 'ephemeralContainers'],
    ['automountServiceAccountToken', true, 'automountServiceAccountToken'],
    ['enableServiceLinks', true, 'enableServiceLinks'],
    ['restartPolicy', 'Always', 'restartPolicy'],
    ['activeDeadlineSeconds', undefined, 'activeDeadlineSeconds'],
    ['securityContext.runAsNonRoot', undefined, 'securityContext.runAsNonRoot'],
    ['securityContext.runAsUser', 0, 'securityContext.runAsUser'],
    ['securityContext.runAsGroup', 0, 'securityContext.runAsGroup'],
    ['securityContext.fsGroup', 0, 'securityContext.fsGroup'],
    ['securityContext.seccompProfile.type', 'Unconfined', 'securityContext.seccompProfile'],
    ['securityContext.seccompProfile', undefined, 'securityContext.seccompProfile'],
    ['securityContext.sysctls', [], 'securityContext.sysctls'],
    ['securityContext.supplementalGroups', [0], 'securityContext.supplementalGroups'],
    ['volumes.0.hostPath', { path: '/' }, 'volumes.sf'],
    ['volumes.2.nfs', {}, 'volumes.workspace'],
    ...['initContainers.0', 'containers.0'].flatMap((at): [string, unknown, string][] => {
      const name = at.startsWith('init') ? 'keeper' : 'shell';
      return [
        [`${at}.securityContext.privileged`, true, `${name}.privileged`],
        [`${at}.securityContext.allowPrivilegeEscalation`, undefined, `${name}.allowPrivilegeEscalation`],
        [`${at}.securityContext.capabilities.drop`, [], `${name}.capabilities.drop`],
        [`${at}.securityContext.capabilities.add`, ['NET_RAW'], `${name}.capabilities.add`],
        [`${at}.securityContext.procMount`, 'Unmasked', `${name}.procMount`],
        [`${at}.securityContext.runAsUser`, 0, `${name}.overrides`],
        [`${at}.securityContext.seccompProfile`, { type: 'Unconfined' }, `${name}.overrides`],
        [`${at}.ports`, [{ containerPort: 1, hostPort: 1 }], `${name}.hostPort`],
        [`${at}.stdin`, true, `${name}.stdin`],
        [`${at}.tty`, true, `${name}.stdin`],
        [`${at}.terminationMessagePolicy`, 'FallbackToLogsOnError', `${name}.terminationMessagePolicy`],
        [`${at}.lifecycle`, {}, `${name}.probes`],
        [`${at}.volumeMounts.0.mountPropagation`, 'Bidirectional', `${name}.mountPropagation`],
        [`${at}.resources.limits.memory`, undefined, `${name}.resources`],
        [`${at}.resources.requests.cpu`, '1m', `${name}.requests`],
      ];
    }),
    ['containers.0.volumeMounts.0.readOnly', undefined, 'shell.sf'],
  ])('is found weaker if %s is %j', (path, value, weak) => {
    const pod = structuredClone(podOf({}));
    const steps = path.split('.');
    const last = steps.pop() ?? '';
    const parent = steps.reduce((node, step) => node[step] as Node, pod.spec as unknown as Node);
    if (value === undefined) delete parent[last];
    else parent[last] = value;
    expect(weakFields(pod)).toContain(weak);
  });
});

type Node = { [field: string]: unknown };
