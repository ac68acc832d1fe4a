import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bridgeAddress } from '../support/kubernetes/kubelet/pod-network.ts';
import { type PodFleet, startPodFleet } from '../support/kubernetes/pod-fleet.ts';
import { until } from '../support/until.ts';

// Pods that wait in a pool, and Pods that reach names through the proxy of the fleet, with real keepers.

const main = fileURLToPath(new URL('../../apps/worker/src/egress/main.ts', import.meta.url));
const preload = new URL('../fixtures/resolves-names.ts', import.meta.url).href;
const limits = { memoryBytes: 64 * 2 ** 20 };

let directory: string;
let site: Server;
let proxy: ChildProcess;
let pods: PodFleet;
let authority: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-pod-pools-'));
  site = createServer((_incoming, answer) => answer.end('the site\n'));
  await once(site.listen(0, '127.0.0.1'), 'listening');
  authority = `site.test:${(site.address() as AddressInfo).port}`;
  const egress = { host: await bridgeAddress(inject('dockerHost')), port: await freePort() };
  const allow = { networks: ['restricted', 'limited'], hosts: [authority], privateAddresses: ['127.0.0.1/32'] };
  const path = join(directory, 'config.json');
  await writeFile(path, JSON.stringify({ allow, kubernetes: { namespace: 'n', keeper: { image: 'k' }, egress } }));
  const pools = [{ policy: 'kubernetes', limits, min: 1, max: 2 }];
  // Pods reach the proxy on this machine only where nothing keeps them from it.
  const section = { egress, unenforced: ['network'] };
  pods = await startPodFleet({ slots: 20, cluster: { enforced: false }, section, file: { allow, pools } });
  proxy = spawn(process.execPath, ['--conditions=@shellfleet/source', '--no-warnings', '--import', preload, main], {
    env: {
      ...{ SHELLFLEET_CONFIG: path, SHELLFLEET_SEAL_KEY: pods.stack.sealKey },
      SHELLFLEET_TEST_NAMES: JSON.stringify({ 'site.test': [['127.0.0.1']] }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(createInterface(proxy.stdout!), 'line');
}, 60_000);
afterAll(async () => {
  await pods?.[Symbol.asyncDispose]();
  proxy?.kill('SIGKILL');
  site?.close();
  if (directory !== undefined) await rm(directory, { recursive: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const open = (id: string, spec: SessionSpec = {}) =>
  pods.stack.fleet.session(id, { policy: 'kubernetes', limits, ...spec });
const ready = async () => (await pods.stack.fleet.hosts())[0]?.pools?.[0]?.ready ?? 0;

describe('a session in a Pod', () => {
  test('gets one that was ready before, and its own variables', async () => {
    await until(ready, (count) => count === 1);
    const [waiting] = pods.cluster.server.store.list('pods');
    const session = await open('warm', { env: { OWN: 'mine' } });
    expect(await session.run('echo $OWN; hostname')).toMatchObject({ stdout: 'mine\nsession\n' });
    expect(await session.info()).toMatchObject({ start: 'warm' });
    const pod = pods.cluster.server.store.get('pods', 'sessions', waiting?.metadata.name ?? '');
    expect(pod?.metadata).toMatchObject({
      uid: waiting?.metadata.uid,
      annotations: { 'shellfleet.dev/session-of': 'default:warm' },
    });
    await until(ready, (count) => count === 1);
    await session.close();
  });

  test('reaches an allowed name through the proxy of the fleet, and no other', async () => {
    const image = inject('testImages').busybox;
    const session = await open('limited', { image, sandbox: { network: 'limited', allowedHosts: [authority] } });
    const { stdout } = await session.run(
      `wget -q -O - http://${authority}/ 2>&1; wget -q -O - http://other.test/ 2>&1`,
    );
    expect(stdout).toMatch(/^the site\n.*403/s);
    expect(await session.info()).toMatchObject({ start: 'cold', coldReason: 'network' });
    expect(await session.run('true', { network: 'restricted' })).toMatchObject({
      error: { code: 'SANDBOX_UNAVAILABLE', message: expect.stringContaining('the proxy of Pods') },
    });
    await session.close();
  });
});
