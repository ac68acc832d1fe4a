import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encodeFrame, FrameType, keeperPath } from '@shellfleet/keeper';
import { forgedFrame, forgedOpening, NoiseForger } from '@shellfleet/keeper/test-support';
import Docker from 'dockerode';
import { describe, expect, inject, test } from 'vitest';
import { KEEPER_PORT, KeeperContainer, makeLinkKeys } from '../support/keeper-container.ts';
import { useBox } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';
import { until } from '../support/until.ts';

// The keeper listens, as in a Pod, and the test dials the address of its container.

/** Returns a script that connects to each address, and prints what the keeper sends until it closes, at once. */
const connectTo = (...hosts: string[]) => `for host in ${hosts.join(' ')}; do
  exec 3<>/dev/tcp/$host/${KEEPER_PORT} && timeout 0.7 cat <&3; echo "$host ended with $?"; exec 3<&-
done`;

/** Gives a container an address of IPv6. */
async function openIpv6Network(container: string): Promise<AsyncDisposable & { address: string }> {
  const docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
  const prefix = `fd${randomBytes(5)
    .toString('hex')
    .replace(/^(..)(....)(....)$/, '$1:$2:$3')}`;
  const network = await docker.createNetwork({
    Name: `sf-test-${randomBytes(6).toString('hex')}`,
    EnableIPv6: true,
    IPAM: { Driver: 'default', Config: [{ Subnet: `${prefix}::/64` }] },
  });
  const remove = async () => {
    await network.disconnect({ Container: container, Force: true }).catch(() => {});
    await network.remove();
  };
  try {
    await network.connect({ Container: container });
    const { Containers: containers } = (await network.inspect()) as Docker.NetworkInspectInfo;
    const address = containers?.[container]?.IPv6Address.split('/')[0];
    if (!address) throw new Error('the container has no address of IPv6');
    return { address, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

describe('a keeper that listens', () => {
  const opened = useBox({ transport: 'tcp' });

  /** Connects to the address without a handshake, and returns how long the keeper holds the connection. */
  async function holdFor(address: string, first: Uint8Array): Promise<number> {
    const began = performance.now();
    const socket = connect(KEEPER_PORT, address);
    socket.on('error', () => {}); // closed with unread bytes
    socket.write(first);
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    return performance.now() - began;
  }

  test('leaves none of its variables to the shell', async () => {
    expect(await opened.client.run('env | grep ^SF_; cat /proc/1/environ 2>/dev/null')).toMatchObject({ out: '' });
  });

  test('passes on a large output and a large script unchanged', async () => {
    const script = `: ${'x'.repeat(500_000)}\nseq 1000000`;
    const { stdout } = await opened.client.run(script);
    const expected = createHash('md5');
    for (let at = 1; at <= 1_000_000; at++) expected.update(`${at}\n`);
    expect(createHash('md5').update(stdout).digest('hex')).toBe(expected.digest('hex'));
  });

  test('serves the worker with the higher fence, and tells another one that fence', async () => {
    const { box, client } = opened;
    await client.run('kept=yes');
    const second = new ShellClient(await box.connect({ fence: 50 }));
    await until(
      () => client.disconnected,
      (reason) => reason !== undefined,
    );
    await expect(box.connect({ fence: 49 })).rejects.toMatchObject({ name: 'FencedOff', fence: 50 });
    expect(await second.run('echo $kept')).toMatchObject({ out: 'yes\n' });
    expect(second.disconnected).toBeUndefined();
  });

  test('obeys nobody who has read its environment and lacks the private key', async () => {
    const { box } = opened;
    const client = new ShellClient(await box.connect());
    const forger = new NoiseForger(box.keys);
    const socket = connect(KEEPER_PORT, await box.address());
    socket.on('error', () => {});
    socket.write(forgedOpening(forger));
    const [reply] = (await once(socket, 'data')) as [Buffer];
    const ended = once(socket, 'close');
    socket.write(forgedFrame(forger, reply.subarray(2), encodeFrame({ type: FrameType.claim, fence: 2 ** 40 })));
    const began = performance.now();
    await ended;
    expect(performance.now() - began).toBeLessThan(900);
    expect(client.disconnected).toBeUndefined();
    expect((await box.connect()).connected).toBe(true);
  });

  test('is not disturbed by peers without its keys, and drops them after a second', async () => {
    const { box } = opened;
    const client = new ShellClient(await box.connect());
    const running = client.run('sleep 0.3; for i in 1 2 3; do echo $i; sleep 0.3; done');
    const others = [{ ...box.keys, psk: makeLinkKeys().psk }, makeLinkKeys()];
    const dialled = others.map((keys) =>
      box.dial(AbortSignal.timeout(300), { keys }).catch((error: Error) => error.name),
    );
    expect(await Promise.all(dialled)).toEqual(['TimeoutError', 'TimeoutError']);
    const wrong = [Buffer.alloc(50), Buffer.alloc(70_000, 0xff), Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(5))];
    const address = await box.address();
    for (const ms of await Promise.all(wrong.map((bytes) => holdFor(address, bytes)))) expect(ms).toBeLessThan(900);
    const silent = await Promise.all(Array.from({ length: 6 }, () => holdFor(address, Buffer.alloc(3))));
    expect(silent.map((ms) => ms < 900)).toEqual([true, true, false, false, false, false]);
    for (const ms of silent) expect(ms).toBeLessThan(2_500);
    expect(await running).toMatchObject({ out: '1\n2\n3\n' });
    expect(client.disconnected).toBeUndefined();
  });

  test('refuses connections from its own network namespace', async () => {
    const client = new ShellClient(await opened.box.connect());
    const address = await opened.box.address();
    const { out } = await client.run(connectTo('127.0.0.1', '127.1.2.3', address));
    expect(out).toBe(['127.0.0.1', '127.1.2.3', address].map((host) => `${host} ended with 0\n`).join(''));
    const fromOtherLoopback = `socket.create_connection(('127.0.0.1', ${KEEPER_PORT}), 0.7, ('127.9.9.9', 0))`;
    const received = await client.run(`python3 -c "import socket; print(${fromOtherLoopback}.recv(9))"`);
    expect(received).toMatchObject({ out: "b''\n", err: '' });
  });

  test('listens for IPv6, and refuses its own addresses there', async ({ skip }) => {
    const { box } = opened;
    const client = new ShellClient(await box.connect());
    await using network = await openIpv6Network(box.container.id).catch(() => undefined);
    if (network === undefined) return skip('the engine makes no network with IPv6');
    const { out } = await client.run(connectTo('::1', network.address));
    expect(out).toBe(['::1', network.address].map((host) => `${host} ended with 0\n`).join(''));
    const wire = await box.dial(AbortSignal.timeout(10_000), { host: network.address });
    wire.close();
  });

  test('prints nothing', async () => {
    const client = new ShellClient(await opened.box.connect());
    await client.run('echo printed; echo printed >&2; exec 2>&1; exit 3');
    const logs = await opened.box.container.logs({ stdout: true, stderr: true });
    expect(logs.toString()).toBe('');
  });
});

describe('a keeper that is to listen', () => {
  /** Runs a keeper to its end. Returns its exit code and what it printed. */
  async function run(env: Record<string, string>): Promise<[number | null, string]> {
    const options = { dockerHost: inject('dockerHost'), image: inject('sessionImage') };
    await using box = await KeeperContainer.create({ ...options, transport: 'tcp', env });
    await box.container.start();
    const exitCode = await box.exitCode();
    return [exitCode, (await box.container.logs({ stdout: true, stderr: true })).toString()];
  }

  test.each([
    ['ends in order when no worker claims it for the given time', 0, { SF_UNCLAIMED_MS: '200' }],
    ['refuses a key that is not one', 103, { SF_LINK_PSK: 'a'.repeat(63) }],
  ])('%s', async (_, exitCode, env) => {
    expect(await run(env)).toEqual([exitCode, '']);
  });
});

describe('the arguments of a keeper', () => {
  const NOT_FIRST = 101;
  const USAGE = 102;
  test.each([
    ['tcp:7443', NOT_FIRST],
    ['tcp:10.1.2.3:7443', NOT_FIRST],
    ['tcp:[fd00::1]:65535', NOT_FIRST],
    ['tcp:0', USAGE],
    ['tcp:65536', USAGE],
    ['tcp:7443x', USAGE],
    ['tcp:', USAGE],
    ['tcp:localhost:7443', USAGE],
    ['tcp:fd00::1:7443', USAGE],
  ])('name a place to listen, or give an exit code: %s', async (address, code) => {
    await expect(promisify(execFile)(await keeperPath(), [address])).rejects.toMatchObject({ code, stderr: '' });
  });
});

describe('keeper --install', () => {
  test('copies the program for everyone to run, and reports by its exit code what failed', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-install-'));
    try {
      const keeper = await keeperPath();
      const path = join(directory, 'keeper');
      const install = (to: string) => promisify(execFile)(keeper, ['--install', to]);
      for (let time = 0; time < 2; time++) expect(await install(path)).toEqual({ stdout: '', stderr: '' });
      expect((await stat(path)).mode & 0o7777).toBe(0o555);
      expect((await readFile(path)).equals(await readFile(keeper))).toBe(true);
      await expect(install(join(directory, 'away/keeper'))).rejects.toMatchObject({ code: 109, stderr: '' });
      await expect(install(directory)).rejects.toMatchObject({ code: 109 }); // is a directory
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
