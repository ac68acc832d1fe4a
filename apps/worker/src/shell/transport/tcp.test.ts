import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Frame, FrameType, KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import { ListeningKeeper, type ListeningKeeperOptions, TOKEN_OVER_TCP } from '@shellfleet/keeper/test-support';
import { linkKeysOf, pskOf } from '@shellfleet/sealing';
import { afterEach, describe, expect, test } from 'vitest';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { connectShell } from '../connect-shell.ts';
import { FencedOff } from '../keeper-connection.ts';
import type { Shell } from '../shell.ts';

const sealKey = '1'.repeat(64);
const { privateKey, publicKey } = linkKeysOf(sealKey);
const psk = pskOf(sealKey, 'sessions', 'sf-1');
const open: { close(): Promise<void> | void }[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function startKeeper(options: Partial<ListeningKeeperOptions> = {}, port = 0): Promise<ListeningKeeper> {
  const keeper = await ListeningKeeper.start({ publicKey, psk, ...options }, port);
  open.push(keeper);
  return keeper;
}

interface Place {
  address: { host: string; port: number };
  keys?: { privateKey: KeyObject; psk: Buffer };
}

/** Returns an address at which nobody listens. */
async function refusingAddress(): Promise<Place['address']> {
  const keeper = await ListeningKeeper.start({ publicKey, psk });
  const { address } = keeper;
  await keeper.close();
  return address;
}

interface Waiting {
  fence?: number;
  deadlineMs?: number;
  unreachedDeadlineMs?: number;
}

async function connectTo({ address, keys = { privateKey, psk } }: Place, { fence = 1, ...deadlines }: Waiting = {}) {
  const sandbox = {
    keeperProtocol: KEEPER_PROTOCOL_VERSION,
    description: 'sandbox of a test',
    link: { type: 'tcp', token: TOKEN_OVER_TCP, address: async () => address, ...keys },
    died: new Promise(() => {}),
  } as Partial<Sandbox> as Sandbox; // its other fields are not used
  const shell = await connectShell(sandbox, {
    ...{ fence, deadlineMs: 20_000, start: false, onMessage: () => {} },
    ...deadlines,
  });
  open.push({ close: () => shell.disconnect() });
  return shell;
}

/** Sets handlers of the shell, and returns what they have received. */
function listen(shell: Shell): { gone: string[]; late: Buffer[] } {
  const received: { gone: string[]; late: Buffer[] } = { gone: [], late: [] };
  shell.on({
    onShell() {},
    onLate: (_id, _stream, _offset, bytes) => received.late.push(Buffer.from(bytes)),
    onGone: (reason) => received.gone.push(reason),
  });
  return received;
}

describe('dialing a keeper', () => {
  test('claims it after the handshake, and exchanges frames of every size', async () => {
    const frames: Frame[] = [];
    const keeper = await startKeeper({
      onFrame: (frame, { send }) => {
        frames.push(frame);
        if (frame.type !== FrameType.input) return;
        for (let at = 0; at < frame.payload.length; at += 60_000)
          send({ type: FrameType.late, offset: at, payload: frame.payload.subarray(at, at + 60_000) });
      },
    });
    const shell = await connectTo(keeper);
    const received = listen(shell);
    const bytes = randomBytes(1 << 20);
    shell.input('01K00000000000000000000000', 0, bytes, false);
    await expect.poll(() => Buffer.concat(received.late).length).toBe(bytes.length);
    expect(Buffer.concat(received.late)).toEqual(bytes);
    expect(keeper.handshakes).toBe(1);
    expect(frames.map(({ fence }) => fence)).toEqual([1]);
  });

  test('waits for a keeper that does not listen yet', async () => {
    const { address } = await startKeeper();
    await open.pop()?.close();
    const connecting = connectTo({ address });
    await new Promise((resolve) => setTimeout(resolve, 120));
    const keeper = await startKeeper({}, address.port);
    await expect(connecting).resolves.toMatchObject({ connected: true });
    expect(keeper.connections).toBe(1);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['breaks off', (socket) => socket.destroy()],
    ['answers with other bytes', (socket) => socket.write(Buffer.concat([Buffer.of(0, 48), Buffer.alloc(48, 'x')]))],
    ['answers with a message of another size', (socket) => socket.write(Buffer.from([0, 3, 1, 2, 3]))],
    ['never answers', () => {}],
  ])('dials again when the other end %s', async (_, spoil) => {
    const keeper = await startKeeper({
      onConnection: (socket, count) => {
        if (count === 1) spoil(socket);
        return count === 1;
      },
    });
    await connectTo(keeper);
    expect([keeper.connections, keeper.handshakes]).toEqual([2, 1]);
  });

  test('dials again when the keeper ends a connection before it answers the claim', async () => {
    let writes = 0;
    const keeper = await startKeeper({
      onConnection: (socket, count) => {
        // The second message of this worker is its claim.
        if (count === 1) socket.on('data', () => ++writes === 2 && socket.destroy());
        return false;
      },
    });
    await connectTo(keeper);
    expect(keeper.handshakes).toBe(2);
  });

  test.each([
    ['another psk', { privateKey, psk: randomBytes(32) }],
    ['another private key', { privateKey: generateKeyPairSync('x25519').privateKey, psk }],
  ])('fails at the deadline with the reason for a worker with %s', async (_, keys) => {
    const { address } = await startKeeper();
    await expect(connectTo({ address, keys }, { deadlineMs: 300 })).rejects.toMatchObject({
      code: 'SESSION_START_FAILED',
      message: `The keeper in the sandbox of a test did not answer within 300 ms. The last attempt: 127.0.0.1:${address.port}: the connection was closed during the handshake.`,
    });
  });

  test('fails at the deadline with the reason when nothing listens', async () => {
    const { address } = await startKeeper();
    await open.pop()?.close();
    await expect(connectTo({ address }, { deadlineMs: 200 })).rejects.toThrow('ECONNREFUSED');
  });

  test('goes on after the deadline while the network refuses each connection', async () => {
    const address = await refusingAddress();
    const connecting = connectTo({ address }, { deadlineMs: 50, unreachedDeadlineMs: 20_000 });
    await delay(150);
    await startKeeper({}, address.port);
    await expect(connecting).resolves.toMatchObject({ connected: true });
  });

  test('fails at the later deadline when the network has refused each connection', async () => {
    const address = await refusingAddress();
    await expect(connectTo({ address }, { deadlineMs: 50, unreachedDeadlineMs: 150 })).rejects.toThrow(
      /did not answer within 150 ms\. The last attempt: .*ECONNREFUSED/,
    );
  });

  test('fails at the deadline when something accepts connections and says nothing', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const address = { host: '127.0.0.1', port };
    await expect(connectTo({ address }, { deadlineMs: 100, unreachedDeadlineMs: 20_000 })).rejects.toThrow(
      'did not answer within 100 ms',
    );
    silent.close();
  });

  test('fails with FencedOff when a worker with a higher fence owns the shell', async () => {
    const keeper = await startKeeper({ fence: 7 });
    await expect(connectTo(keeper, { fence: 6 })).rejects.toBeInstanceOf(FencedOff);
    await expect(connectTo(keeper, { fence: 8 })).resolves.toMatchObject({ connected: true });
  });
});

describe('a connection to a keeper that listens', () => {
  test.each([
    ['that follow no key', (socket: Socket) => socket.write(Buffer.from('\0\x20 garbage of a peer on the way.......'))],
    ['without a tag', (socket: Socket) => socket.write(Buffer.from([0, 2, 1, 1]))],
  ])('ends as closed at bytes %s', async (_, spoil) => {
    let socket: Socket | undefined;
    const keeper = await startKeeper({
      onConnection: (accepted) => {
        socket = accepted;
        return false;
      },
    });
    const received = listen(await connectTo(keeper));
    if (socket !== undefined) spoil(socket);
    await expect.poll(() => received.gone).toEqual(['closed']);
  });

  test('reads nothing while it is paused, and the rest afterwards', async () => {
    const piece = randomBytes(60_000);
    const pieces = 200;
    let keeperSide: Socket | undefined;
    const keeper = await startKeeper({
      onFrame: ({ type }, { socket, send }) => {
        if (type !== FrameType.storage) return;
        keeperSide = socket;
        for (let i = 0; i < pieces; i += 1) send({ type: FrameType.late, offset: i * piece.length, payload: piece });
      },
    });
    const shell = await connectTo(keeper);
    const received = listen(shell);
    shell.storage('away');
    shell.pause();
    await expect.poll(() => keeperSide?.writableLength ?? 0).toBeGreaterThan(piece.length);
    const held = received.late.length;
    expect(held).toBeLessThan(pieces);
    shell.resumeReading();
    await expect.poll(() => received.late.length).toBe(pieces);
    expect(received.late.every((bytes) => bytes.equals(piece))).toBe(true);
  });

  test('is given up when the deadline passes while the address is unknown', async () => {
    const sandbox = {
      keeperProtocol: KEEPER_PROTOCOL_VERSION,
      description: 'sandbox of a test',
      link: { type: 'tcp', token: TOKEN_OVER_TCP, address: () => new Promise(() => {}), privateKey, psk },
      died: new Promise(() => {}),
    } as Partial<Sandbox> as Sandbox; // its other fields are not used
    const options = { fence: 1, deadlineMs: 100, start: false, onMessage: () => {} };
    await expect(connectShell(sandbox, options)).rejects.toThrow('did not answer within 100 ms.');
  });
});
