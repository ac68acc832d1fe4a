import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeFrame, FrameType } from '@shellfleet/keeper';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type KeeperListener, listenForKeeper } from './socket.ts';

const token = 'a'.repeat(64);
let directory: string;
let path: string;
let door: KeeperListener;
let sockets: Socket[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-door-'));
  path = join(directory, 'socket');
  door = await listenForKeeper({ path, token });
  sockets = [];
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  door.close();
  await rm(directory, { recursive: true });
});

function dial(): Socket {
  const socket = connect(path);
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

function hello(word: string): Buffer {
  const payload = Buffer.alloc(112);
  payload.writeUInt32LE(1, 0);
  payload.write(word, 48);
  return encodeFrame({ type: FrameType.hello, payload });
}

const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));

describe('the socket for a keeper', () => {
  test('accepts a connection with the token, and delivers all its bytes', async () => {
    const bytes = Buffer.concat([hello(token), Buffer.from('more')]);
    const socket = dial();
    socket.write(bytes.subarray(0, 50));
    socket.write(bytes.subarray(50));
    const transport = await door.accept();
    const heard: Buffer[] = [];
    transport.open({ data: (piece) => heard.push(Buffer.from(piece)), closed() {} });
    await expect.poll(() => Buffer.concat(heard).length).toBe(bytes.length);
    expect(Buffer.concat(heard)).toEqual(bytes);
    transport.close();
    await closed(socket);
  });

  test.each([
    ['another token', hello('b'.repeat(64))],
    ['a part of the token', hello('a'.repeat(63))],
    ['no token', hello('')],
    ['another frame', encodeFrame({ type: FrameType.output })],
    ['junk', Buffer.alloc(200, 'x')],
  ])('closes a connection that sends %s', async (_, bytes) => {
    const socket = dial();
    socket.write(bytes);
    await closed(socket);
    const accepted = door.accept({ signal: AbortSignal.timeout(50) });
    await expect(accepted).rejects.toThrow();
  });

  test('closes a connection that sends nothing for a second', async () => {
    const began = performance.now();
    await closed(dial());
    expect(performance.now() - began).toBeGreaterThan(900);
  });

  test('keeps at most four unauthenticated connections, and still accepts the keeper', async () => {
    const crowd = Array.from({ length: 50 }, dial);
    const gone = crowd.map(closed);
    await Promise.all(gone.slice(0, 46));
    dial().write(hello(token));
    const transport = await door.accept({ signal: AbortSignal.timeout(2_000) });
    transport.close();
  });

  test('replaces the first connection by a second one with the token', async () => {
    const first = dial();
    first.write(hello(token));
    const ended = closed(first);
    await expect.poll(() => first.bytesWritten).toBeGreaterThan(0);
    dial().write(hello(token));
    await ended;
    await expect(door.accept()).resolves.toBeDefined();
  });

  test('is writable for every user of the container, and refuses an invalid path', async () => {
    expect((await stat(path)).mode & 0o777).toBe(0o666);
    await expect(listenForKeeper({ path: `/tmp/${'x'.repeat(120)}`, token })).rejects.toThrow(RangeError);
  });
});
