import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Pod, podOf } from '../support/kubernetes/kubelet/pod-status.ts';
import { ask, type Caller } from '../support/kubernetes/request.ts';
import { type PodParts, samplePod } from '../support/kubernetes/sample-pod.ts';
import { type Cluster, startCluster } from '../support/kubernetes/start-cluster.ts';
import { until } from '../support/until.ts';

const PODS = '/api/v1/namespaces/sessions/pods';
const { busybox } = inject('testImages');

let cluster: Cluster;
let admin: Caller;
beforeAll(async () => {
  const nodes = [
    { name: 'one', capacity: { cpu: '8' }, podPidsLimit: 64, noexecVolumes: ['plain'] },
    { name: 'lost', labels: { disk: 'lost' } },
  ];
  cluster = await startCluster({ nodes, pullBackoffMs: 200, housekeepingMs: 500 });
  const everything = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  admin = { ...cluster, token: (await cluster.tokenFor(everything)).token };
});
afterAll(() => cluster?.close());

/** Makes a Pod whose container runs a script. */
async function run(name: string, script: string, { spec = {}, container = {} }: PodParts = {}): Promise<void> {
  const resources = { limits: { cpu: '500m', memory: '32Mi', 'ephemeral-storage': '64Mi' } };
  const command = ['/bin/sh', '-c', script];
  const parts = { spec: { terminationGracePeriodSeconds: 1, ...spec }, container: {} };
  const pod = samplePod(name, {
    ...parts,
    container: {
      image: busybox,
      command,
      resources,
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      ...container,
    },
  });
  const { code, body } = await ask(admin, 'POST', PODS, pod);
  expect({ code, message: body.message }).toEqual({ code: 201, message: undefined });
}

const read = (name: string) => podOf(cluster.server.store, 'sessions', name);
const wait = (name: string, accept: (pod: Pod) => boolean) =>
  until(
    () => read(name),
    (pod) => pod !== undefined && accept(pod),
  ) as Promise<Pod>;
const ended = (name: string) => wait(name, ({ status }) => ['Succeeded', 'Failed'].includes(status.phase));
const running = (name: string) => wait(name, ({ status }) => status.phase === 'Running');
const conditionOf = ({ status }: Pod, type: string) => status.conditions?.find((one) => one.type === type);

describe.concurrent('the kubelet of the tests', () => {
  test('runs init containers and the container as their Pod says', async () => {
    const keeper = {
      name: 'keeper',
      image: busybox,
      command: ['/bin/sh', '-c', 'printf "#!/bin/sh\\ncat /proc/self/status" > /sf/keeper && chmod 755 /sf/keeper'],
      volumeMounts: [{ name: 'sf', mountPath: '/sf' }],
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    };
    const script = `/sf/keeper; id; hostname; cat /etc/resolv.conf; df -k /run/x | tail -1; echo $GREETING $0
      grep -c ' /plain .*noexec' /proc/mounts; grep -c ' /run/x .*noexec' /proc/mounts
      touch /workspace/a /run/x/b && ! touch /sf/c 2>/dev/null && ! touch /d 2>/dev/null && ls -ln /workspace
      cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
      cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; echo bye > /dev/termination-log`;
    await run('whole', script, {
      spec: {
        initContainers: [keeper],
        hostname: 'session',
        dnsPolicy: 'None',
        dnsConfig: { nameservers: ['127.0.0.1'] },
        volumes: [
          { name: 'sf', emptyDir: {} },
          { name: 'workspace', emptyDir: { sizeLimit: '8Mi' } },
          { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          { name: 'plain', emptyDir: { sizeLimit: '1Mi' } },
        ],
      },
      container: {
        env: [
          { name: 'NAME', value: 'you' },
          { name: 'GREETING', value: 'hello $(NAME) $$(NAME)' },
        ],
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'sf', mountPath: '/sf', readOnly: true },
          { name: 'workspace', mountPath: '/workspace' },
          { name: 'run', mountPath: '/run/x' },
          { name: 'plain', mountPath: '/plain' },
        ],
      },
    });
    const { spec, status } = await ended('whole');
    expect(status).toMatchObject({
      phase: 'Succeeded',
      podIP: expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/),
      initContainerStatuses: [{ name: 'keeper', ready: true, state: { terminated: { reason: 'Completed' } } }],
      containerStatuses: [{ state: { terminated: { exitCode: 0, reason: 'Completed', message: 'bye\n' } } }],
    });
    expect(spec.nodeName).toBeDefined();
    const logs = await cluster.kubelet.logs('sessions', 'whole');
    expect(logs).toMatch(/CapEff:\s+0{16}\n(?:.*\n)*CapBnd:\s+0{16}\n(?:.*\n)*NoNewPrivs:\s+1\nSeccomp:\s+2\n/);
    expect(logs).toMatch(/uid=1000\S* gid=1000\S* groups=1000\S*\nsession\nnameserver 127.0.0.1\ntmpfs +1024 /);
    expect(logs).toMatch(/\nhello you \$\(NAME\) \/bin\/sh\n1\n0\n/);
    expect(logs).toMatch(/1000 +1000 .* a\n33554432\n64\n/);
  });

  test('gives Pods addresses that this machine reaches, and no neighbour', async () => {
    const listen = 'while true; do echo hi | nc -l -p 7443 >/dev/null; done';
    await run('listener', listen);
    const { podIP = '' } = (await running('listener')).status;
    const answer = await until(
      async () => {
        const socket = connect(7443, podIP);
        const [data] = await Promise.race([once(socket, 'data'), once(socket, 'error')]).catch(() => ['']);
        socket.destroy();
        return String(data);
      },
      (text) => text === 'hi\n',
    );
    expect(answer).toBe('hi\n');
    const server = new URL(cluster.server.url);
    await run(
      'neighbour',
      `nc -w 1 ${podIP} 7443 </dev/null && exit 1; nc -w 1 ${server.hostname} ${server.port} </dev/null && exit 2; exit 0`,
    );
    expect((await ended('neighbour')).status.phase).toBe('Succeeded');
  });

  test('ends the whole container when a process has no memory left', async () => {
    await run('greedy', '(tail /dev/zero); sleep 60');
    expect((await ended('greedy')).status).toMatchObject({
      phase: 'Failed',
      containerStatuses: [{ state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }],
    });
  });

  test('evicts a Pod whose directory is over its limit', async () => {
    await run('full', 'dd if=/dev/zero of=/workspace/a bs=1M count=3 2>/dev/null; sleep 60', {
      spec: { volumes: [{ name: 'workspace', emptyDir: { sizeLimit: '1Mi' } }] },
      container: { volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }] },
    });
    const message = 'Usage of EmptyDir volume "workspace" exceeds the limit "1Mi". ';
    const pod = await ended('full');
    expect(pod.status).toMatchObject({ phase: 'Failed', reason: 'Evicted', message });
    expect(conditionOf(pod, 'DisruptionTarget')).toMatchObject({ reason: 'TerminationByKubelet', message });
  });

  test('ends a Pod at its deadline', async () => {
    await run('old', 'sleep 60', { spec: { activeDeadlineSeconds: 1 } });
    expect((await ended('old')).status).toMatchObject({
      reason: 'DeadlineExceeded',
      containerStatuses: [{ state: { terminated: { reason: 'Error', exitCode: 137 } } }],
    });
  });

  test.each([
    ['never', 'shellfleet/none:1', 'Never', 'ErrImageNeverPull', 'is not present with pull policy of Never'],
    ['invalid', 'Shellfleet:', 'IfNotPresent', 'InvalidImageName', "couldn't parse image name"],
    [
      'missing',
      '127.0.0.1:9/none:1',
      'IfNotPresent',
      'ImagePullBackOff',
      'Back-off pulling image "127.0.0.1:9/none:1"',
    ],
  ])('reports an image of the kind %s', async (name, image, imagePullPolicy, reason, message) => {
    await run(name, 'true', { container: { image, imagePullPolicy } });
    const reasonOf = ({ status }: Pod) => {
      const state = status.containerStatuses?.[0]?.state;
      return state && 'waiting' in state ? state.waiting : undefined;
    };
    const pod = await wait(name, (one) => reasonOf(one)?.reason === reason);
    expect(reasonOf(pod)).toEqual({ reason, message: expect.stringContaining(message) });
  });

  test('says why no node has room, and schedules once one has', async () => {
    const limits = { cpu: '9', memory: '16Mi', 'nvidia.com/gpu': '1' };
    await run('large', 'true', { container: { resources: { limits } } });
    const pod = await wait('large', (one) => conditionOf(one, 'PodScheduled') !== undefined);
    expect(conditionOf(pod, 'PodScheduled')).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
      message:
        '0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.',
    });
    cluster.kubelet.addNode({ name: 'large', capacity: { 'nvidia.com/gpu': '1' }, taints: [] });
    expect((await ended('large')).spec.nodeName).toBe('large');
  });

  test('binds a claim, and keeps its files for the next Pod', async () => {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'workspace' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '8Mi' } } },
    };
    await ask(admin, 'POST', PODS.replace('pods', 'persistentvolumeclaims'), claim);
    const parts = {
      spec: { volumes: [{ name: 'workspace', persistentVolumeClaim: { claimName: 'workspace' } }] },
      container: { volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }] },
    };
    await run('first', 'echo kept > /workspace/a', parts);
    await ended('first');
    await run('second', 'cat /workspace/a', parts);
    await ended('second');
    expect(await cluster.kubelet.logs('sessions', 'second')).toBe('kept\n');
  });

  test('ends a deleted Pod in its grace and then takes it away', async () => {
    await run('deleted', 'trap "echo term; exit 3" TERM; while true; do sleep 0.05; done', {
      spec: { terminationGracePeriodSeconds: 30 },
    });
    const { uid } = (await running('deleted')).metadata;
    const last: Pod[] = [];
    const stop = cluster.server.store.subscribe(({ type, object }) => {
      if (object.metadata.uid === uid && type === 'DELETED') last.push(object as Pod);
    });
    await ask(admin, 'DELETE', `${PODS}/deleted`);
    await until(
      () => last.length,
      (count) => count === 1,
    );
    stop();
    expect(last[0]?.status).toMatchObject({
      phase: 'Failed',
      containerStatuses: [{ state: { terminated: { exitCode: 3, reason: 'Error' } } }],
    });
  });

  test('rejects a Pod for which the scheduler found room too soon', async () => {
    cluster.kubelet.addNode({ name: 'full', labels: { disk: 'full' } });
    cluster.kubelet.rejectNext('full');
    await run('rejected', 'true', { spec: { nodeSelector: { disk: 'full' } } });
    const { status } = await ended('rejected');
    expect(status).toMatchObject({ reason: 'OutOfcpu', message: expect.stringContaining('enough resource: cpu') });
    expect(status.containerStatuses).toBeUndefined();
    cluster.kubelet.removeNode('full');
  });

  test('loses a node: its Pods are deleted, and go with the node', async () => {
    await run('lost', 'sleep 60', { spec: { nodeSelector: { disk: 'lost' } } });
    await running('lost');
    cluster.kubelet.lose('lost', { evictAfterMs: 100 });
    expect(conditionOf(read('lost') as Pod, 'Ready')).toMatchObject({ status: 'False', reason: 'NodeNotReady' });
    const pod = await wait('lost', ({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect(pod.status.phase).toBe('Running');
    expect(conditionOf(pod, 'DisruptionTarget')).toMatchObject({ reason: 'DeletionByTaintManager' });
    cluster.kubelet.removeNode('lost');
    expect(read('lost')).toBeUndefined();
  });
});

describe('a drained node', () => {
  test('evicts its Pods and takes no more', async () => {
    await run('drained', 'sleep 60');
    const { spec } = await running('drained');
    for (const { name } of [{ name: 'one' }, { name: 'large' }]) cluster.kubelet.cordon(name);
    cluster.kubelet.drain(spec.nodeName ?? '');
    expect(conditionOf(read('drained') as Pod, 'DisruptionTarget')).toMatchObject({
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    });
    await run('waiting', 'true');
    const pod = await wait('waiting', (one) => conditionOf(one, 'PodScheduled') !== undefined);
    expect(conditionOf(pod, 'PodScheduled')?.message).toMatch(
      /^0\/2 nodes are available: 2 node\(s\) were unschedulable\./,
    );
    await until(
      () => read('drained'),
      (gone) => gone === undefined,
    );
  });
});

describe('a cluster without enforcement', () => {
  test('lets Pods reach each other and the API server', async () => {
    const open = await startCluster({ nodes: 1, enforced: false });
    const { hostname, port } = new URL(open.server.url);
    const { token } = await open.tokenFor([{ apiGroups: [''], resources: ['pods'], verbs: ['create'] }]);
    const command = ['/bin/sh', '-c', `nc -w 1 ${hostname} ${port} </dev/null`];
    await ask({ ...open, token }, 'POST', PODS, samplePod('open', { container: { image: busybox, command } }));
    const pod = await until(
      () => podOf(open.server.store, 'sessions', 'open'),
      (one) => ['Succeeded', 'Failed'].includes(one?.status.phase ?? ''),
    );
    expect(pod?.status.phase).toBe('Succeeded');
    await open.close();
  });
});
