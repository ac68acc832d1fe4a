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

/** Returns a script that connects to each address, and prints what the keeper sends until it resets, at once. */
const connectTo = (...hosts: string[]) => `for host in ${hosts.join(' ')}; do
  exec 3<>/dev/tcp/$host/${KEEPER_PORT} && echo >&3 && timeout 0.7 cat <&3; echo "$host ended with $?"; exec 3<&-
done`;
const resetBy = (...hosts: string[]) => hosts.map((host) => `${host} ended with 1\n`).join('');

/** Sends the keeper SIGTERMs that name no sender: with sigqueue's system call, and for input of a socket. */
const FORGED_SIGNALS = `python3 - <<'END'
import ctypes, fcntl, os, signal, socket, struct
call = {'x86_64': 129, 'aarch64': 138}[os.uname().machine]
info = struct.pack('iiiiii104x', signal.SIGTERM, 0, -1, 0, 0, os.getuid())
print(ctypes.CDLL(None).syscall(call, 1, int(signal.SIGTERM), info))
ours, other = socket.socketpair()
F_SETSIG = 10
fcntl.fcntl(ours, fcntl.F_SETOWN, 1)
fcntl.fcntl(ours, F_SETSIG, int(signal.SIGTERM))
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
other.send(b'x')
END
kill -TERM 1`;

/** Connects again and again, with a byte each, until the signal. Returns the number of connections. */
async function flood(address: string, signal: AbortSignal): Promise<number> {
  let count = 0;
  const connectOften = async () => {
    for (; !signal.aborted; count++) {
      const socket = connect(KEEPER_PORT, address);
      socket.on('error', () => {}); // dropped
      socket.end('x');
      socket.resume();
      await new Promise((resolve) => socket.once('close', resolve));
    }
  };
  await Promise.all(Array.from({ length: 64 }, connectOften));
  return count;
}

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
  const ofImage = { SF_TOKEN: 'x', SF_SYNC: '0', SF_DIRECTORY: '/none', SF_WORKSPACE: '1:1:/none', SF_EGRESS: '/none' };
  const opened = useBox({ transport: 'tcp', env: ofImage });

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

  test('leaves none of its variables to the shell, and obeys none of its image', async () => {
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
    const running = client.run('sleep 0.3; for i in 1 2 3; do echo $i; sleep 0.6; done');
    const others = [{ ...box.keys, psk: makeLinkKeys().psk }, makeLinkKeys()];
    // After a second the places of peers of earlier tests are free.
    const dialled = others.map((keys) =>
      box.dial(AbortSignal.timeout(1_000), { keys }).catch((error: Error) => error.name),
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

  test('keeps a peer that has shown the psk when strangers come after it', async () => {
    const { box } = opened;
    const address = await box.address();
    const sent = async (first: Uint8Array) => {
      const socket = connect(KEEPER_PORT, address);
      socket.on('error', () => {}); // dropped
      await new Promise((resolve) => socket.write(first, resolve));
      return socket;
    };
    await box.container.pause(); // so that the keeper finds all of them at once
    try {
      const shown = await sent(forgedOpening(new NoiseForger(box.keys)));
      const strangers = await Promise.all(Array.from({ length: 8 }, () => sent(Buffer.alloc(3))));
      const replied = Promise.race([
        once(shown, 'data').then(() => 'a reply'),
        once(shown, 'close').then(() => 'none'),
      ]);
      await box.container.unpause();
      expect(await replied).toBe('a reply');
      for (const socket of [shown, ...strangers]) socket.destroy();
    } finally {
      await box.container.unpause().catch(() => {}); // has happened
    }
  });

  test('serves its worker and takes another one during a flood of strangers', async () => {
    const { box } = opened;
    const client = new ShellClient(await box.connect());
    const over = new AbortController();
    const flooded = flood(await box.address(), over.signal);
    try {
      const script = 'for i in 1 2 3; do echo $i; sleep 0.1; done';
      expect(await client.run(script)).toMatchObject({ out: '1\n2\n3\n' });
      expect(client.disconnected).toBeUndefined();
      const next = new ShellClient(await box.connect({ signal: AbortSignal.timeout(5_000) }));
      expect(await next.run('echo taken')).toMatchObject({ out: 'taken\n' });
    } finally {
      over.abort();
    }
    expect(await flooded).toBeGreaterThan(100);
  });

  test('does not take a signal of its session for one from outside', async () => {
    const client = new ShellClient(await opened.box.connect());
    expect(await client.run(FORGED_SIGNALS)).toMatchObject({ out: '0\n', err: '' });
    expect(await client.run('sleep 0.3; echo kept')).toMatchObject({ out: 'kept\n' });
    expect((await opened.box.connect()).connected).toBe(true);
  });

  test('refuses connections from its own network namespace', async () => {
    const client = new ShellClient(await opened.box.connect());
    const address = await opened.box.address();
    const { out } = await client.run(connectTo('127.0.0.1', '127.1.2.3', address));
    expect(out).toBe(resetBy('127.0.0.1', '127.1.2.3', address));
    const fromOtherLoopback = `socket.create_connection(('127.0.0.1', ${KEEPER_PORT}), 0.7, ('127.9.9.9', 0))`;
    const received = await client.run(
      `python3 -c "import socket; s = ${fromOtherLoopback}; s.send(b'x'); print(s.recv(9))" 2>&1 | tail -n 1`,
    );
    expect(received.out).toMatch(/^ConnectionResetError/);
  });

  test('listens for IPv6, and refuses its own addresses there', async ({ skip }) => {
    const { box } = opened;
    const client = new ShellClient(await box.connect());
    await using network = await openIpv6Network(box.container.id).catch(() => undefined);
    if (network === undefined) return skip('the engine makes no network with IPv6');
    const { out } = await client.run(connectTo('::1', network.address));
    expect(out).toBe(resetBy('::1', network.address));
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
