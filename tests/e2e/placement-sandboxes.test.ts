import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Two hosts whose operators allow different sandboxes: h1 allows unconfined sessions and the network `limited`; h2
// allows the network `full`, a container runtime, root, and the policy bubblewrap where it is available. Their labels
// differ.

const ALLOWED = {
  h1: {
    modes: ['workspace-write', 'danger-full-access'],
    networks: ['restricted', 'limited'],
    hosts: ['example.org'],
    runtimes: ['runsc-that-is-not-there'],
  },
  h2: { networks: ['restricted', 'full'], runtimes: ['runc'], users: ['root'] },
  'h2-later': { modes: ['danger-full-access'], networks: ['restricted', 'full'] },
};

const LABELS: Record<string, object> = {
  h1: { labels: { zone: 'a' } },
  h2: { labels: { zone: 'b', 'example.org/gpu': 'yes' } },
};

let directory: string;
let stack: TestFleet;
const configOf = (name: keyof typeof ALLOWED) => ({ SHELLFLEET_CONFIG: join(directory, name) });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-allowed-'));
  for (const [name, allow] of Object.entries(ALLOWED))
    await writeFile(join(directory, name), JSON.stringify({ allow, ...LABELS[name] }));
  stack = await startFleet({
    workers: 2,
    env: { SHELLFLEET_HOST_USER: '4725' },
    envs: [configOf('h1'), { ...configOf('h2'), SHELLFLEET_POLICIES: isRoot ? 'docker,bubblewrap' : 'docker' }],
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const open = (id: string, spec: SessionSpec) =>
  stack.fleet.session(id, { ...spec, limits: { memoryBytes: 64 * 2 ** 20 } });

describe('placement by sandbox', () => {
  test('runs each session where its labels are, and its mode, network and runtime allowed', async () => {
    const asked: Record<string, { spec: SessionSpec; host: string }> = {
      'no-sandbox': { spec: { sandbox: { mode: 'danger-full-access' } }, host: 'h1' },
      'forbids-one': { spec: { sandbox: { selection: 'forbid' } }, host: 'h1' },
      limited: { spec: { sandbox: { network: 'limited', allowedHosts: ['example.org'] } }, host: 'h1' },
      'both-of-h1': { spec: { sandbox: { mode: 'danger-full-access', network: 'limited' } }, host: 'h1' },
      full: { spec: { sandbox: { network: 'full' } }, host: 'h2' },
      runtime: { spec: { policy: { type: 'docker', runtime: 'runc' } }, host: 'h2' },
      'zone-a': { spec: { hosts: { zone: 'a' } }, host: 'h1' },
      'zone-b': { spec: { hosts: { zone: 'b', 'example.org/gpu': 'yes' } }, host: 'h2' },
      'zone-b-and-full': { spec: { hosts: { zone: 'b' }, sandbox: { network: 'full' } }, host: 'h2' },
      'full-and-runtime': {
        spec: { policy: { type: 'docker', runtime: 'runc' }, sandbox: { network: 'full' } },
        host: 'h2',
      },
      ...(isRoot ? { walled: { spec: { policy: 'bubblewrap', sandbox: { network: 'full' } }, host: 'h2' } } : {}),
    };
    const ran = await Promise.all(
      Object.entries(asked).map(async ([id, { spec }]) => {
        const session = await open(id, spec);
        const { outcome, hostId, error } = await session.run('true');
        await session.close();
        return [id, error?.message ?? outcome, hostId];
      }),
    );
    expect(ran).toEqual(Object.entries(asked).map(([id, { host }]) => [id, 'success', host]));
  });

  test('lets every host take a session that may write less than its policy gives', async () => {
    const ran = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (id) => {
        const session = await open(`reads-${id}`, { sandbox: { mode: 'read-only' } });
        const { outcome, hostId } = await session.run('true');
        await session.close();
        return { outcome, hostId };
      }),
    );
    expect(ran.map(({ outcome }) => outcome)).toEqual(ran.map(() => 'success'));
  });

  test('makes a session wait for an unlisted name, with the setting in the reason', async () => {
    const session = await open('other-name', { sandbox: { network: 'limited', allowedHosts: ['elsewhere.net'] } });
    await session.submit('echo never', { startDeadlineMs: 500 });
    const { noHostReason } = await until(
      () => session.info(),
      (info) => info.noHostReason !== undefined,
    );
    expect(noHostReason).toContain(
      "sandbox.allowedHosts: elsewhere.net: this host does not allow it; it allows example.org (its operator's setting: allow.hosts of SHELLFLEET_CONFIG)",
    );
    await session.close();
  });

  test('makes a session wait for a label that no host has, and names it', async () => {
    const cli = new FleetCli(stack);
    expect((await cli.text(['exec', 'bad-label', '--host-label', 'gpu=', '--', 'true'])).stderr).toMatch(
      /spec\.hosts\.gpu: must have a name and a value of 1 to 63 of A-Z a-z 0-9/,
    );
    const session = await open('no-such-host', { hosts: { zone: 'a', 'example.org/gpu': 'yes' } });
    await session.submit('echo never');
    const reason =
      "No live host that offers the policy 'docker' has all of the labels example.org/gpu=yes, zone=a; the closest one lacks ";
    expect(await session.info()).toMatchObject({
      ...{ state: 'queued', position: 1, noHostReason: expect.stringContaining(reason) },
      needs: { policy: 'docker', hosts: 'example.org/gpu=yes zone=a' },
    });
    expect((await cli.text(['queue'])).stdout).toContain(reason);
    expect((await cli.text(['hosts', 'ls'])).stdout).toMatch(/^h2 .* example\.org\/gpu=yes,zone=b +/m);
    await session.close();
  });

  // All six sessions must run there. If hosts were chosen at random, some of them would fail.
  test('runs all sessions that ask for root on the host that allows root', async () => {
    const ran = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const session = await open(`root-${n}`, { user: 'root' });
        const { outcome, hostId, stdout } = await session.run('id -un');
        await session.close();
        return { outcome, hostId, stdout };
      }),
    );
    expect(ran).toEqual(ran.map(() => ({ outcome: 'success', hostId: 'h2', stdout: 'root\n' })));
  });

  test('does not offer a listed runtime that the engine lacks, and reports it', async () => {
    const session = await open('no-runtime', { policy: { type: 'docker', runtime: 'runsc-that-is-not-there' } });
    await session.submit('echo never', { startDeadlineMs: 500 });
    const { noHostReason } = await until(
      () => session.info(),
      (info) => info.noHostReason !== undefined,
    );
    expect(noHostReason).toMatch(
      /policy\.runtime: runsc-that-is-not-there is not among the runtimes that this host allows: (?:none|runc) \(.*allow\.runtimes/,
    );
    const hosts = await stack.fleet.hosts();
    expect(hosts.map(({ id, warnings }) => [id, warnings ?? []])).toEqual([
      ['h1', [expect.stringContaining('does not have the runtime runsc-that-is-not-there')]],
      ['h2', []],
    ]);
    await session.close();
  });

  test('makes a session wait with a reason until a host that allows it comes', async () => {
    const session = await open('nowhere', { sandbox: { mode: 'danger-full-access', network: 'full' } });
    const waits = await session.submit('echo here');
    const reason =
      "None of the 2 live hosts that offer the policy 'docker' runs what the session asks for. sandbox.mode: this host does not allow 'danger-full-access'; it allows 'workspace-write', 'read-only' (its operator's setting: allow.modes of SHELLFLEET_CONFIG).";
    const info = await until(
      () => session.info(),
      ({ noHostReason }) => noHostReason !== undefined,
    );
    expect(info).toMatchObject({ state: 'queued', noHostReason: expect.stringContaining(reason) });
    expect((await new FleetCli(stack).run(['queue'])).stdout.toString()).toContain(reason);
    await stack.workers[1]?.stop('SIGTERM');
    await stack.workers[1]?.start(configOf('h2-later'));
    expect(await waits.result()).toMatchObject({ outcome: 'success', stdout: 'here\n', hostId: 'h2' });
    expect((await session.info()).noHostReason).toBeUndefined();
  });
});
