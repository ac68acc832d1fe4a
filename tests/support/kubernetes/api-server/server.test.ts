import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, type Caller, watch } from '../request.ts';
import { samplePod } from '../sample-pod.ts';
import { type Cluster, startCluster } from '../start-cluster.ts';
import type { Rule } from './access.ts';

const PODS = '/api/v1/namespaces/sessions/pods';
const everything: Rule[] = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];

let cluster: Cluster;
let admin: Caller;
beforeAll(async () => {
  cluster = await startCluster();
  admin = { ...cluster, token: (await cluster.tokenFor(everything, everything)).token };
});
afterAll(() => cluster?.close());

const create = (pod: object) => ask(admin, 'POST', PODS, pod);

describe('access', () => {
  test('refuses a token that is not valid with 401', async () => {
    expect(await ask({ ...cluster, token: 'none' }, 'GET', PODS)).toMatchObject({
      code: 401,
      body: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'Unauthorized',
        reason: 'Unauthorized',
        code: 401,
      },
    });
  });

  test('refuses what no rule of the role allows with 403', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['create', 'get'] }];
    const { token } = await cluster.tokenFor(rules);
    const caller = { ...cluster, token };
    const user = 'system:serviceaccount:sessions:account-2';
    const refused = await ask(caller, 'POST', `${PODS}/a/exec?command=sh`);
    expect(refused).toMatchObject({
      code: 403,
      body: {
        reason: 'Forbidden',
        message: `pods "a" is forbidden: User "${user}" cannot create resource "pods/exec" in API group "" in the namespace "sessions"`,
        details: { name: 'a', kind: 'pods' },
      },
    });
    expect((await ask(caller, 'GET', PODS)).body.message).toBe(
      `pods is forbidden: User "${user}" cannot list resource "pods" in API group "" in the namespace "sessions"`,
    );
    expect((await ask(caller, 'GET', '/api/v1/pods')).body.message).toContain('at the cluster scope');
    expect((await ask(caller, 'GET', `${PODS}/none`)).code).toBe(404);
  });

  test('takes a rotated token and refuses the former one', async () => {
    const account = await cluster.tokenFor(everything);
    const former = { ...cluster, token: account.token };
    expect((await ask(former, 'GET', PODS)).code).toBe(200);
    await account.rotate();
    expect((await ask(former, 'GET', PODS)).code).toBe(401);
    expect((await ask({ ...cluster, token: account.token }, 'GET', PODS)).code).toBe(200);
  });

  test('shows the version to everyone and the groups to users', async () => {
    expect((await ask(cluster, 'GET', '/version')).body.major).toBe('1');
    expect((await ask(cluster, 'GET', '/api')).body.message).toBe(
      'forbidden: User "system:anonymous" cannot get path "/api"',
    );
    expect((await ask(admin, 'GET', '/apis')).body.groups).toMatchObject([{ name: 'coordination.k8s.io' }]);
    expect((await ask(admin, 'GET', '/api/v1')).body.resources[0]).toMatchObject({ name: 'pods', kind: 'Pod' });
  });
});

describe('objects', () => {
  test('have what the server writes, and defaults', async () => {
    const { code, body } = await create(samplePod('defaults'));
    expect(code).toBe(201);
    expect(body).toMatchObject({
      metadata: {
        name: 'defaults',
        namespace: 'sessions',
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        resourceVersion: expect.stringMatching(/^\d+$/),
        creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        generation: 1,
      },
      spec: {
        dnsPolicy: 'ClusterFirst',
        schedulerName: 'default-scheduler',
        serviceAccountName: 'default',
        terminationGracePeriodSeconds: 30,
        tolerations: [{ key: 'node.kubernetes.io/not-ready', tolerationSeconds: 300 }, { tolerationSeconds: 300 }],
        containers: [{ imagePullPolicy: 'IfNotPresent', resources: { requests: { cpu: '500m', memory: '64Mi' } } }],
      },
      status: { phase: 'Pending', qosClass: 'Guaranteed' },
    });
    expect((await create(samplePod('defaults'))).body).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message: 'pods "defaults" already exists',
    });
  });

  test('are patched unless the resource version is another', async () => {
    const { resourceVersion } = (await create(samplePod('patched'))).body.metadata;
    const path = `${PODS}/patched`;
    const merge = (metadata: object) => ask(admin, 'PATCH', path, { metadata }, 'application/merge-patch+json');
    const first = await merge({ resourceVersion, labels: { 'shellfleet.dev/session': 'a' } });
    expect(first.body.metadata.labels).toEqual({ 'shellfleet.dev/session': 'a' });
    expect(await merge({ resourceVersion, labels: { x: 'y' } })).toMatchObject({
      code: 409,
      body: {
        reason: 'Conflict',
        message:
          'Operation cannot be fulfilled on pods "patched": the object has been modified; please apply your changes to the latest version and try again',
      },
    });
    const operations = [
      { op: 'test', path: '/metadata/labels/shellfleet.dev~1session', value: 'a' },
      { op: 'replace', path: '/metadata/labels/shellfleet.dev~1session', value: 'b' },
    ];
    const patch = () => ask(admin, 'PATCH', path, operations, 'application/json-patch+json');
    expect((await patch()).body.metadata.labels).toEqual({ 'shellfleet.dev/session': 'b' });
    expect((await patch()).body).toMatchObject({ code: 422, reason: 'Invalid' });
    const same = (await ask(admin, 'GET', path)).body.metadata.resourceVersion;
    expect((await merge({ labels: { 'shellfleet.dev/session': 'b' } })).body.metadata.resourceVersion).toBe(same);
    const ofSpec = { spec: { hostname: 'other' } };
    expect((await ask(admin, 'PATCH', path, ofSpec, 'application/merge-patch+json')).body).toMatchObject({
      code: 422,
      message: expect.stringContaining('Pod "patched" is invalid: spec: Forbidden: pod updates may not change fields'),
    });
  });

  test('are deleted in their grace period, and by preconditions', async () => {
    const { uid } = (await create(samplePod('deleted', { spec: { nodeName: 'one' } }))).body.metadata;
    const path = `${PODS}/deleted`;
    const other = await ask(admin, 'DELETE', path, { preconditions: { uid: 'other' } });
    expect(other.body).toMatchObject({ code: 409, message: expect.stringContaining('(other) does not match the UID') });
    const marked = await ask(admin, 'DELETE', path, { gracePeriodSeconds: 20, preconditions: { uid } });
    expect(marked.body.metadata).toMatchObject({ deletionGracePeriodSeconds: 20, generation: 2 });
    expect(marked.body.metadata.deletionTimestamp).toBeDefined();
    const longer = await ask(admin, 'DELETE', path, { gracePeriodSeconds: 25 });
    expect(longer.body.metadata).toEqual(marked.body.metadata);
    expect((await ask(admin, 'DELETE', path, { gracePeriodSeconds: 0 })).code).toBe(200);
    expect((await ask(admin, 'GET', path)).body).toMatchObject({
      code: 404,
      message: 'pods "deleted" not found',
      details: { name: 'deleted', kind: 'pods' },
    });
  });

  test('go with their owner', async () => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/sessions/leases';
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'fleet' }, spec: {} };
    const { uid } = (await ask(admin, 'POST', leases, lease)).body.metadata;
    const owner = { apiVersion: lease.apiVersion, kind: 'Lease', name: 'fleet', uid, controller: true };
    await create(samplePod('owned', { metadata: { ownerReferences: [owner] } }));
    expect((await ask(admin, 'DELETE', `${leases}/fleet`)).body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'fleet', group: 'coordination.k8s.io', kind: 'leases', uid },
    });
    expect((await ask(admin, 'GET', `${PODS}/owned`)).code).toBe(404);
    expect((await create(samplePod('late', { metadata: { ownerReferences: [owner] } }))).code).toBe(201);
    expect((await ask(admin, 'GET', `${PODS}/late`)).code).toBe(404);
  });
});

describe('admission', () => {
  test.each([
    ['an unknown field', { spec: { hostUser: false } }, 400, 'strict decoding error: unknown field "spec.hostUser"'],
    ['an unknown field of a container', { container: { cpu: 1 } }, 400, 'unknown field "spec.containers[0].cpu"'],
    ['a missing image', { container: { image: '' } }, 422, 'spec.containers[0].image: Required value'],
    [
      'an unknown volume',
      { container: { volumeMounts: [{ name: 'x', mountPath: '/x' }] } },
      422,
      'spec.containers[0].volumeMounts[0].name: Not found: "x"',
    ],
    ['an unknown service account', { spec: { serviceAccountName: 'x' } }, 403, 'serviceaccount "x" not found'],
    ['an unknown runtime class', { spec: { runtimeClassName: 'x' } }, 403, 'pod rejected: RuntimeClass "x" not found'],
    ['a privileged container', { container: { securityContext: {} } }, 403, 'violates PodSecurity "restricted:latest"'],
  ])('refuses %s', async (_what, parts, code, message) => {
    const { body } = await create(samplePod('refused', parts));
    expect(body).toMatchObject({ kind: 'Status', code, message: expect.stringContaining(message) });
  });

  test('refuses what the quota has no room for, until a pod has ended', async () => {
    const own = await startCluster();
    const { token } = await own.tokenFor(everything);
    own.server.setQuota('sessions', 'compute', { pods: '1', 'limits.memory': '1Gi' });
    const post = (name: string) => ask({ ...own, token }, 'POST', PODS, samplePod(name));
    expect((await post('one')).code).toBe(201);
    const quota = own.server.store.get('resourcequotas', 'sessions', 'compute');
    expect(quota?.status).toEqual({
      hard: { pods: '1', 'limits.memory': '1Gi' },
      used: { pods: '1', 'limits.memory': '64Mi' },
    });
    expect((await post('two')).body).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message: 'pods "two" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=1, limited: pods=1',
    });
    own.server.store.update('pods', 'sessions', 'one', (pod) => ({ ...pod, status: { phase: 'Failed' } }));
    expect((await post('two')).code).toBe(201);
    await own.close();
  });
});

describe('lists', () => {
  test('come in parts of one state until the history is compacted', async () => {
    for (const name of ['list-a', 'list-b', 'list-c'])
      await create(samplePod(name, { metadata: { labels: { list: name.slice(-1) } } }));
    const list = (query: string) => ask(admin, 'GET', `${PODS}?labelSelector=list&limit=2${query}`);
    const first = (await list('')).body;
    expect(first.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
      'list-a',
      'list-b',
    ]);
    await create(samplePod('list-d', { metadata: { labels: { list: 'd' } } }));
    const second = (await list(`&continue=${first.metadata.continue}`)).body;
    expect(second.items).toHaveLength(1);
    expect(second.metadata).toEqual({ resourceVersion: first.metadata.resourceVersion });
    cluster.server.compact();
    await create(samplePod('list-e', { metadata: { labels: { list: 'e' } } }));
    const late = (await list(`&continue=${first.metadata.continue}`)).body;
    expect(late).toMatchObject({ code: 410, reason: 'Expired', message: expect.stringContaining('too old') });
    const rest = (await list(`&continue=${late.metadata.continue}`)).body;
    expect(rest.items).toHaveLength(2);
    const some = await ask(admin, 'GET', `${PODS}?labelSelector=${encodeURIComponent('list in (a, e)')}`);
    expect(some.body.items).toHaveLength(2);
    const named = await ask(admin, 'GET', `${PODS}?fieldSelector=metadata.name%3Dlist-b`);
    expect(named.body.items).toHaveLength(1);
  });
});

describe('watches', () => {
  test('show changes after a revision, selections and bookmarks', async () => {
    const revision = cluster.server.store.revision;
    const query = `?watch=true&allowWatchBookmarks=true&labelSelector=watch%3Dyes&resourceVersion=${revision}`;
    await create(samplePod('watched', { metadata: { labels: { watch: 'yes' } } }));
    const events = watch(admin, PODS + query);
    expect((await events.next()).value).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'watched' } } });
    const label = (value: string) =>
      ask(
        admin,
        'PATCH',
        `${PODS}/watched`,
        { metadata: { labels: { watch: value } } },
        'application/merge-patch+json',
      );
    await label('no');
    expect((await events.next()).value).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'watched' } } });
    await label('yes');
    expect((await events.next()).value).toMatchObject({ type: 'ADDED' });
    cluster.server.bookmark();
    const { resourceVersion } = (await ask(admin, 'GET', PODS)).body.metadata;
    expect((await events.next()).value).toEqual({
      type: 'BOOKMARK',
      object: {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { resourceVersion, creationTimestamp: null },
        spec: { containers: null },
        status: {},
      },
    });
    cluster.server.endWatches();
    expect((await events.next()).done).toBe(true);
  });

  test('of a compacted revision get 410, and cut ones break', async () => {
    const revision = cluster.server.store.revision;
    await create(samplePod('compacted'));
    cluster.server.compact();
    const late = watch(admin, `${PODS}?watch=true&resourceVersion=${revision}`);
    expect((await late.next()).value).toMatchObject({
      type: 'ERROR',
      object: { code: 410, reason: 'Expired', message: expect.stringContaining('too old resource version') },
    });
    expect((await late.next()).done).toBe(true);
    const events = watch(admin, `${PODS}?watch=true&fieldSelector=metadata.name%3Dcompacted`);
    expect((await events.next()).value).toMatchObject({ type: 'ADDED' });
    const broken = events.next();
    cluster.server.cutWatches();
    await expect(broken).rejects.toThrow();
    const short = watch(admin, `${PODS}?watch=true&timeoutSeconds=1&resourceVersion=${cluster.server.store.revision}`);
    expect((await short.next()).done).toBe(true);
  });

  test('get 410 as the response where the server has no cache of events', async () => {
    await using own = await startCluster({ expiredAs: 'response' });
    const { token } = await own.tokenFor(everything);
    const { revision } = own.server.store;
    own.server.addNamespace('other');
    own.server.compact();
    const reply = await ask({ ...own, token }, 'GET', `${PODS}?watch=true&resourceVersion=${revision}`);
    expect(reply).toMatchObject({ code: 410, body: { kind: 'Status', reason: 'Expired' } });
  });
});

describe('faults', () => {
  test('answer the next requests, and the server comes back after a stop', async () => {
    cluster.server.failNext(1, { code: 429, retryAfterSeconds: 3 }, ({ verb }) => verb === 'list');
    const busy = await ask(admin, 'GET', PODS);
    expect(busy).toMatchObject({ code: 429, headers: { 'retry-after': '3' } });
    cluster.server.failNext(1, { code: 500 });
    expect((await ask(admin, 'GET', PODS)).body).toMatchObject({ code: 500, reason: 'InternalError' });
    cluster.server.failNext(1, 'reset');
    await expect(ask(admin, 'GET', PODS)).rejects.toThrow();
    await cluster.server.stop();
    await expect(ask(admin, 'GET', PODS)).rejects.toThrow(/ECONNREFUSED/);
    await cluster.server.resume();
    expect((await ask(admin, 'GET', PODS)).code).toBe(200);
    expect(cluster.server.requests.at(-1)).toMatchObject({
      verb: 'list',
      resource: 'pods',
      namespace: 'sessions',
      code: 200,
    });
  });
});
