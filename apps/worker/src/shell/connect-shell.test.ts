import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Examination,
  encodeFrame,
  FrameDecoder,
  FrameType,
  KEEPER_PROTOCOL_VERSION,
  MAX_TO_KEEPER,
  uint32s,
  uint64s,
} from '@shellfleet/keeper';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sandbox, SandboxDeath } from '../sandbox/sandbox.ts';
import { connectShell } from './connect-shell.ts';

const token = 'a'.repeat(64);
let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-connect-'));
  path = join(directory, 'socket');
});
afterEach(() => rm(directory, { recursive: true }));

const hello = (version = KEEPER_PROTOCOL_VERSION, oldestWorker = version): Buffer =>
  encodeFrame({
    type: FrameType.hello,
    fence: 1,
    payload: Buffer.concat([
      uint32s(oldestWorker * 2 ** 16 + version, 0, 1, 0),
      uint64s(0, 0, 0, 0),
      Buffer.from(token),
    ]),
  });

/** Returns a sandbox whose keeper sends a hello on each connection. `claimed` decides what follows the claim. */
function sandboxWith(claimed: (socket: Socket) => void): Sandbox {
  const dial = () => {
    const socket = connect(path, () => socket.write(hello()));
    socket.on('error', () => {});
    socket.once('data', () => claimed(socket));
    return socket;
  };
  const start = async () => void dial().once('close', dial);
  return {
    keeperProtocol: KEEPER_PROTOCOL_VERSION,
    description: 'sandbox of a test',
    link: { type: 'socket', path, token },
    died: new Promise(() => {}),
    start,
  } as Partial<Sandbox> as Sandbox; // its other fields are not used
}

/** Answers the claim, and then the examination with these lines. */
function examinedAs(socket: Socket, lines: string): void {
  socket.write(hello());
  const decoder = new FrameDecoder({ maxPayload: MAX_TO_KEEPER });
  socket.on('data', (bytes) => {
    for (const { type, offset } of decoder.push(bytes))
      if (type === FrameType.examine)
        socket.write(encodeFrame({ type: FrameType.examined, fence: 1, offset, payload: Buffer.from(lines) }));
  });
}

describe('connecting to a shell', () => {
  test('fails with PROTOCOL_MISMATCH and both versions for another keeper protocol', async () => {
    const sandbox = { keeperProtocol: KEEPER_PROTOCOL_VERSION - 1 } as Sandbox; // its other fields are not used
    await expect(
      connectShell(sandbox, { fence: 1, deadlineMs: 1_000, start: false, onMessage: () => {} }),
    ).rejects.toMatchObject({
      code: 'PROTOCOL_MISMATCH',
      context: { keeper: KEEPER_PROTOCOL_VERSION - 1, worker: KEEPER_PROTOCOL_VERSION },
    });
  });

  test('works with a newer keeper only if that works with this version', async () => {
    const options = { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} };
    const newer = KEEPER_PROTOCOL_VERSION + 1;
    const sandboxOf = (oldestWorker: number) => ({
      ...sandboxWith((socket) => socket.write(hello(newer, oldestWorker))),
      keeperProtocol: newer,
    });
    const shell = await connectShell(sandboxOf(KEEPER_PROTOCOL_VERSION), options);
    shell.disconnect();
    await expect(connectShell(sandboxOf(newer), options)).rejects.toMatchObject({
      code: 'PROTOCOL_MISMATCH',
      context: { keeper: newer, worker: KEEPER_PROTOCOL_VERSION },
    });
  });

  test('claims the keeper over a second connection when the first one breaks', async () => {
    let claims = 0;
    const sandbox = sandboxWith((socket) => {
      claims += 1;
      if (claims === 1) socket.destroy();
      else socket.write(hello());
    });
    const shell = await connectShell(sandbox, { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} });
    expect(claims).toBe(2);
    shell.disconnect();
  });

  test('lets a started sandbox ask its keeper what is in force', async () => {
    const lines = 'seccomp 2\nprobe 10.96.0.1:443 timeout\n';
    const sandbox = sandboxWith((socket) => examinedAs(socket, lines));
    let found: Examination | undefined;
    sandbox.prove = async (examine) => {
      found = await examine(['10.96.0.1:443']);
    };
    const shell = await connectShell(sandbox, { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} });
    expect(found).toEqual({ seccomp: 2, probes: new Map([['10.96.0.1:443', 'timeout']]) });
    expect(shell.connected).toBe(true);
    shell.disconnect();
  });

  test.each([
    ['the sandbox refuses what its keeper found', 'seccomp 0\n', 'no filter'],
    ['the examination is malformed', 'seccomp perhaps\n', 'ended (malformed)'],
  ])('fails and leaves the keeper when %s', async (_, lines, words) => {
    let socket: Socket | undefined;
    const sandbox = sandboxWith((connected) => {
      socket = connected;
      examinedAs(connected, lines);
    });
    sandbox.prove = async (examine) => {
      if ((await examine([])).seccomp === 0) throw new Error('no filter');
    };
    const options = { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} };
    await expect(connectShell(sandbox, options)).rejects.toThrow(words);
    await expect.poll(() => socket?.destroyed).toBe(true);
  });

  test('fails at the deadline when the keeper ends every connection', async () => {
    const sandbox = sandboxWith((socket) => socket.destroy());
    const options = { fence: 1, deadlineMs: 500, start: true, onMessage: () => {} };
    await expect(connectShell(sandbox, options)).rejects.toMatchObject({
      code: 'SESSION_START_FAILED',
      message: 'The keeper in the sandbox of a test did not answer within 500 ms.',
    });
  });

  test('uses the shell before the engine has answered that the sandbox runs', async () => {
    const sandbox = sandboxWith((socket) => socket.write(hello()));
    const { start } = sandbox;
    const answered = Promise.withResolvers<void>();
    sandbox.start = () => start().then(() => answered.promise);
    const shell = await connectShell(sandbox, { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} });
    expect(shell.connected).toBe(true);
    shell.disconnect();
    answered.resolve();
  });

  test('fails with the reason of the engine when the sandbox ends because its start failed', async () => {
    const death = Promise.withResolvers<SandboxDeath>();
    const start = async () => {
      death.resolve({ reason: 'exited', exitCode: 127 });
      await nextTurn();
      throw new Error('no such user');
    };
    const sandbox = { ...sandboxWith(() => {}), died: death.promise, start };
    const options = { fence: 1, deadlineMs: 20_000, start: true, onMessage: () => {} };
    await expect(connectShell(sandbox, options)).rejects.toThrow('no such user');
  });
});
