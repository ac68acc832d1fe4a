import type { KubernetesAllowances, PodManifest } from '@shellfleet/policy';
import { sessionSpecSchema } from '@shellfleet/protocol';
import { createSealKey, egressKeyOf, verifyEgress } from '@shellfleet/sealing';
import { KubernetesSandboxes, type KubernetesSandboxesOptions, type SessionRef } from '@shellfleet/worker';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { fleetIdOf, keyspaceOf } from '../support/keyspace.ts';
import { type Cluster, startCluster } from '../support/kubernetes/start-cluster.ts';
import { WORKER_RULES } from '../support/kubernetes/worker-role.ts';

// Sandboxes of the policy kubernetes against an API server without a kubelet: the tests write the status of Pods.

const namespace = keyspaceOf(`pods-${process.pid}`);
const fleetId = fleetIdOf(`pods-${process.pid}`);
const session: SessionRef = { namespace, tenant: 'acme', session: 's1' };
const sealKeys = [createSealKey()];
const never = async () => false;
let cluster: Cluster;
let account: Awaited<ReturnType<Cluster['tokenFor']>>;
let sandboxes: KubernetesSandboxes;

async function open(
  of: Partial<KubernetesSandboxesOptions> = {},
  settings = {},
  allowed: Partial<KubernetesAllowances> = {},
): Promise<KubernetesSandboxes> {
  const opened = new KubernetesSandboxes({
    ...{ namespace, hostId: 'one', sealKeys, slowness: 0.05 },
    api: { server: cluster.server.url, caFile: cluster.caFile, tokenFile: account.tokenFile },
    allowances: {
      images: 'any',
      defaultImage: 'registry.example/session:1',
      ...allowed,
      cluster: {
        ...{ namespace: 'sessions', port: 7443, keeper: { image: 'registry.example/keeper:1', volume: 'init' } },
        ...{ pullPolicy: 'IfNotPresent', pullSecrets: [], nodeSelector: {}, tolerations: [], userNamespaces: false },
        workspace: { type: 'emptyDir', sizeBytes: 2 ** 30 },
        ...{ ephemeralStorageBytes: 2 ** 30, runtimeClasses: [], resources: [], unenforced: [], ...settings },
      },
    },
    ...of,
  });
  await opened.check();
  return opened;
}

beforeAll(async () => {
  cluster = await startCluster({ bookmarkEveryMs: 100 });
  account = await cluster.tokenFor(WORKER_RULES);
  sandboxes = await open();
});
afterAll(async () => {
  await sandboxes?.close();
  await cluster?.close();
});

/** Waits for longer than a busy machine needs. */
const until = (check: () => void) => vi.waitFor(check, 15_000);

const podNames = () => cluster.server.store.list('pods').map(({ metadata }) => metadata.name);
const spec = (of = {}) => sessionSpecSchema.parse({ policy: 'kubernetes', ...of });

/** Writes the status of a Pod, as its kubelet does. */
function setStatus(name: string, status: object): void {
  cluster.server.store.update('pods', 'sessions', name, (pod) => ({ ...pod, status }));
}

const RUNNING = {
  phase: 'Running',
  podIP: '10.0.0.9',
  containerStatuses: [{ name: 'shell', state: { running: {} } }],
};

/** What the keeper of a Pod finds when everything is in force. */
const IN_FORCE = {
  ...{ effectiveCapabilities: 0n, boundingCapabilities: 0n, noNewPrivs: true, seccomp: 2, execWorkspace: true },
  memoryMaxBytes: 2 ** 20,
};

/** Creates a sandbox whose Pod runs. */
async function running(from = sandboxes, of = session) {
  const sandbox = await from.create(of, spec());
  const started = sandbox.start();
  const name = `sf-${sandbox.id}`;
  await until(() => expect(podNames()).toContain(name));
  setStatus(name, RUNNING);
  await started;
  return { sandbox, name };
}

describe('KubernetesSandboxes', () => {
  test('creates a Pod that the namespace admits, owned by the Lease of the fleet', async () => {
    const { sandbox, name } = await running();
    const pod = cluster.server.store.get('pods', 'sessions', name);
    const lease = cluster.server.store.get('leases', 'sessions', `shellfleet-${fleetId}`);
    expect(pod?.metadata).toMatchObject({
      labels: { 'app.kubernetes.io/managed-by': 'shellfleet', 'shellfleet.dev/fleet': fleetId },
      annotations: { 'shellfleet.dev/session-of': 'acme:s1', 'shellfleet.dev/created-by': 'one' },
      ownerReferences: [{ kind: 'Lease', uid: lease?.metadata.uid, controller: true }],
    });
    if (sandbox.link.type !== 'tcp') throw new Error('a keeper in a Pod is dialled');
    expect(await sandbox.link.address(new AbortController().signal)).toEqual({ host: '10.0.0.9', port: 7443 });
    await sandbox.remove();
    expect(await sandbox.died).toEqual({ reason: 'removed', exitCode: null });
  });

  test('refuses a Pod whose keeper reaches the API server or another Pod', async () => {
    const watching = await open({ probes: ['192.0.2.9:80'] });
    const { sandbox: other } = await running(watching, { ...session, session: 'neighbour' });
    const { sandbox } = await running(watching);
    const { host } = new URL(cluster.server.url);
    const metadata = ['169.254.169.254:80', '168.63.129.16:80'];
    const places = [host, ...metadata, '192.0.2.9:80', '10.0.0.9:7443'];
    // A Pod that falls short elsewhere too is not tried again.
    const examined = (reached: string[]) =>
      sandbox.prove?.(async (probes) => {
        expect(probes).toEqual(places);
        return {
          ...{ ...IN_FORCE, seccomp: reached.length === 0 ? 2 : 0 },
          probes: new Map(places.map((one) => [one, reached.includes(one) ? 'connected' : 'timeout'])),
        };
      });
    await expect(examined([])).resolves.toBeUndefined();
    for (const place of places)
      await expect(examined([place])).rejects.toMatchObject({
        code: 'SANDBOX_UNAVAILABLE',
        message: expect.stringContaining(`the Pod reaches ${place}`),
      });
    await Promise.all([sandbox.remove(), other.remove()]);
    await watching.close();
  });

  test('finds the Pod of a session from another worker, with the same keys', async () => {
    const { sandbox } = await running();
    const other = await open({ hostId: 'two' });
    const found = await other.find(session, sandbox.id);
    expect(found?.state).toBe('running');
    const { psk, token } = sandbox.link as never;
    expect(found?.sandbox.link).toMatchObject({ psk, token });
    expect(await other.find({ ...session, session: 's2' }, sandbox.id)).toBeUndefined();
    expect(await other.find(session, 'ffffffffffff')).toBeUndefined();
    await found?.sandbox.remove();
    expect((await sandbox.died).reason).toBe('removed');
    await other.close();
  });

  test('takes no Pod as not begun because a silent watch shows it so', async () => {
    const sandbox = await sandboxes.create(session, spec());
    const started = sandbox.start();
    const name = `sf-${sandbox.id}`;
    await until(() => expect(podNames()).toContain(name));
    const { tokenFile } = await cluster.tokenFor(WORKER_RULES);
    const api = { server: cluster.server.url, caFile: cluster.caFile, tokenFile };
    const other = await open({ hostId: 'two', api });
    const { user } = cluster.server.requests.findLast(({ verb }) => verb === 'list') ?? {};
    const watches = () => cluster.server.requests.filter((one) => one.verb === 'watch' && one.user === user).length;
    await until(() => expect(watches()).toBe(1));
    cluster.server.failNext(1, 'hang', (one) => one.verb === 'watch' && one.user === user);
    cluster.server.cutWatches();
    await until(() => expect(watches()).toBe(2));
    setStatus(name, RUNNING);
    await started;
    await expect(other.find(session, sandbox.id)).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    await vi.waitFor(async () => expect((await other.find(session, sandbox.id))?.state).toBe('running'), 5_000);
    await Promise.all([sandbox.remove(), other.close()]);
  });

  test('dials a Pod with the seal key that made it, also under a newer key', async () => {
    const { sandbox } = await running();
    const rotated = await open({ sealKeys: [createSealKey(), ...sealKeys] });
    const { psk } = sandbox.link as never;
    expect((await rotated.find(session, sandbox.id))?.sandbox.link).toMatchObject({ psk });
    const strange = await open({ sealKeys: [createSealKey()] });
    await expect(strange.find(session, sandbox.id)).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
    await Promise.all([sandbox.remove(), rotated.close(), strange.close()]);
  });

  test('gives a Pod with the network limited the proxy of its fleet and a token', async () => {
    const settings = { egress: { host: '127.0.0.1', port: 3128 } };
    const allowed = { sandbox: { modes: [], networks: ['limited' as const], hosts: ['*.example.org'] } };
    const limited = await open({}, settings, allowed);
    const allowedHosts = ['a.example.org'];
    const sandbox = await limited.create(session, spec({ sandbox: { network: 'limited', allowedHosts } }));
    const started = expect(sandbox.start()).rejects.toThrow('was removed');
    await until(() => expect(podNames()).toContain(`sf-${sandbox.id}`));
    const pod = cluster.server.store.get('pods', 'sessions', `sf-${sandbox.id}`) as unknown as PodManifest;
    const { value = '' } = pod.spec.containers[0].env?.find(({ name }) => name === 'HTTPS_PROXY') ?? {};
    const { host, password } = new URL(value);
    expect([host, pod.metadata.labels['shellfleet.dev/network']]).toEqual(['127.0.0.1:3128', 'limited']);
    const keys = sealKeys.map(egressKeyOf);
    expect(verifyEgress(keys, password)).toMatchObject({ ...session, hosts: allowedHosts });
    await sandbox.remove();
    await started;
    await limited.close();
  });

  test('gives a Pod of a pool to one session, which any worker then finds', async () => {
    const spare = await sandboxes.spares.create(spec());
    const started = spare.start();
    const name = `sf-${spare.id}`;
    await until(() => expect(podNames()).toContain(name));
    setStatus(name, RUNNING);
    await started;
    const labelsOf = () => cluster.server.store.get('pods', 'sessions', name)?.metadata.labels ?? {};
    expect(labelsOf()).toMatchObject({ 'shellfleet.dev/pool': spare.key });
    expect(labelsOf()).not.toHaveProperty(['shellfleet.dev/session']);
    const other = await open({ hostId: 'two' });
    expect(await other.find(session, spare.id)).toBeUndefined();
    const sandbox = await spare.assign(session);
    await expect(spare.assign({ ...session, session: 's2' })).rejects.toThrow('has a session already');
    const found = await vi.waitFor(() => other.find(session, spare.id));
    expect([found?.state, found?.sandbox.createdAt]).toEqual(['running', sandbox.createdAt]);
    expect(await sandbox.link).toMatchObject({ psk: (spare.link as { psk?: Buffer }).psk });
    await sandbox.remove();
    expect((await spare.died).reason).toBe('removed');
    await other.close();
  });

  test('has one key for all sessions whose Pods differ only in whose they are', async () => {
    const keyOf = (of: object) => sandboxes.spares.keyOf(spec(of));
    const usual = await keyOf({});
    const limits = { cpus: 1, memoryBytes: 512 * 2 ** 20 };
    const same = { limits, env: { A: 'b' }, user: '1000:1000', maxLifetimeMs: 5_000, labels: { a: 'b' } };
    expect(await keyOf(same)).toEqual(usual);
    const fields = [
      { image: 'debian:12' },
      { limits: { cpus: 2 } },
      { limits: { diskBytes: 2 ** 31 } },
      { cwd: '/tmp' },
    ];
    const others = [{ shell: ['/bin/sh'] }, { user: '7' }, { sandbox: { mode: 'read-only' } }];
    const keys = await Promise.all([...fields, ...others].map(keyOf));
    expect(new Set([usual, ...keys].map((key) => JSON.stringify(key))).size).toBe(8);
  });

  test('waits for a quota, and tells its words meanwhile', async () => {
    cluster.server.setQuota('sessions', 'team', { pods: '0' });
    const sandbox = await sandboxes.create(session, spec());
    const started = sandbox.start();
    await until(() => expect(sandbox.waitsFor?.()).toMatch(/exceeded quota: team, requested: pods=1/));
    cluster.server.setQuota('sessions', 'team', { pods: '9' });
    await until(() => expect(podNames()).toContain(`sf-${sandbox.id}`));
    await until(() => expect(sandbox.waitsFor?.()).toBeUndefined());
    setStatus(`sf-${sandbox.id}`, RUNNING);
    await started;
    await sandbox.remove();
  });

  test('leaves no Pod when a sandbox is removed while its Pod waits', async () => {
    const sandbox = await sandboxes.create(session, spec());
    const started = expect(sandbox.start()).rejects.toThrow('was removed');
    await until(() => expect(podNames()).toContain(`sf-${sandbox.id}`));
    await sandbox.remove();
    await started;
    await until(() => expect(podNames()).not.toContain(`sf-${sandbox.id}`));
  });

  test('reports deaths that happened while its watch was broken and the history was lost', async () => {
    const first = await running();
    const second = await running();
    cluster.server.failNext(1, 'reset', ({ verb }) => verb === 'watch');
    cluster.server.cutWatches();
    cluster.server.store.remove('pods', 'sessions', first.name);
    setStatus(second.name, { ...RUNNING, phase: 'Failed', reason: 'Evicted', message: 'low on ephemeral-storage' });
    cluster.server.compact();
    expect((await first.sandbox.died).reason).toBe('removed');
    expect(await second.sandbox.died).toMatchObject({ reason: 'disk' });
    await second.sandbox.remove();
  });

  test('takes no Pod as gone while the API server is away', async () => {
    const { sandbox } = await running();
    await cluster.server.stop();
    await until(() => expect(sandboxes.problem()).toMatch(/^The API server of Kubernetes does not answer/));
    const unknown = expect(sandboxes.find(session, 'ffffffffffff')).rejects.toMatchObject({ retryable: true });
    await unknown;
    await cluster.server.resume();
    await until(() => expect(sandboxes.problem()).toBeUndefined());
    expect((await sandboxes.find(session, sandbox.id))?.state).toBe('running');
    await sandbox.remove();
  });

  test('works on with a token that the kubelet has replaced', async () => {
    await account.rotate();
    const { sandbox } = await running();
    await sandbox.remove();
  });

  test('names the missing right of a service account', async () => {
    const weak = await cluster.tokenFor([]);
    const api = { server: cluster.server.url, caFile: cluster.caFile, tokenFile: weak.tokenFile };
    await expect(open({ api })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(/cannot get resource "leases".* the role of the chart/),
    });
  });
});

/** Creates the Pod of a pool, which runs. */
async function pooled(from: KubernetesSandboxes): Promise<string> {
  const spare = await from.spares.create(spec());
  const started = spare.start();
  const name = `sf-${spare.id}`;
  await until(() => expect(podNames()).toContain(name));
  setStatus(name, RUNNING);
  await started;
  return name;
}

function makeOld(isOld: (name: string) => boolean): void {
  const ages = { creationTimestamp: '2026-01-01T00:00:00Z' };
  for (const resource of ['pods', 'persistentvolumeclaims'])
    for (const { metadata } of cluster.server.store.list(resource))
      if (isOld(metadata.name))
        cluster.server.store.update(resource, 'sessions', metadata.name, (one) => ({
          ...one,
          metadata: { ...one.metadata, ...ages },
        }));
}

describe('sweep', () => {
  test('deletes old Pods and claims that no session has, and no others', async () => {
    const claims = { workspace: { type: 'persistentVolumeClaim', sizeBytes: 2 ** 30 } };
    const author = await open({ hostId: 'gone' }, claims);
    const kinds = ['closed', 'waiting', 'replaced', 'elsewhere', 'young'] as const;
    const made = new Map<string, { name: string; id: string }>();
    for (const kind of kinds) {
      const { sandbox, name } = await running(author, { ...session, session: kind });
      made.set(kind, { name, id: sandbox.id });
    }
    await author.close();
    const used = await running(sandboxes, { ...session, session: 'used' });
    makeOld((name) => name !== made.get('young')?.name);
    const sweeper = await open({ hostId: 'two' }, claims);
    const removed = await sweeper.sweep(
      never,
      async ({ session: kind }) => {
        const sandboxId = made.get(kind)?.id ?? '';
        if (kind === 'waiting') return { host: '', sandboxId };
        if (kind === 'replaced') return { host: 'two', sandboxId: 'another' };
        return kind === 'elsewhere' || kind === 'used' ? { host: 'one', sandboxId: '' } : 'closed';
      },
      0,
    );
    expect(removed).toBe(2);
    const left = ['waiting', 'elsewhere', 'young'].map((kind) => made.get(kind)?.name ?? '');
    await until(() => expect(podNames().toSorted()).toEqual([...left, used.name].toSorted()));
    const claimNames = () => cluster.server.store.list('persistentvolumeclaims').map(({ metadata }) => metadata.name);
    expect(claimNames().toSorted()).toEqual(left.toSorted());
    await sweeper.close();
    await used.sandbox.remove();
  });

  test.each([
    ['without its session', undefined],
    ['without an owner', { host: '', sandboxId: '' }],
    ['with an earlier owner', { host: 'two', sandboxId: 'earlier' }],
  ])('spares the Pods of a Redis that came back %s, for a time', async (_case, owner) => {
    const { sandbox, name } = await running();
    makeOld((one) => one === name);
    const sweeper = await open({ hostId: 'two' });
    expect(await sweeper.sweep(never, async () => owner, 600_000)).toBe(0);
    expect(await sweeper.sweep(never, async () => owner, 600_000)).toBe(0);
    await sweeper.sweep(never, async () => owner, 0);
    expect((await sandbox.died).reason).toBe('removed');
    await sweeper.close();
  });

  test('deletes old Pods of pools whose process is gone or was an earlier one', async () => {
    const [gone, earlier] = [await open({ hostId: 'gone' }), await open()];
    const left = [await pooled(gone), await pooled(earlier)];
    const waiting = await pooled(sandboxes);
    await Promise.all([gone.close(), earlier.close()]);
    makeOld(() => true);
    const ofAnother = async () => ({ host: 'two', sandboxId: '' });
    expect(await sandboxes.sweep(async (hostId) => hostId === 'gone', ofAnother, 0)).toBe(2);
    await until(() => expect(podNames().filter((name) => left.includes(name))).toEqual([]));
    expect(podNames()).toContain(waiting);
  });
});
