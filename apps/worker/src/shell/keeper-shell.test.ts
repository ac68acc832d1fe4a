// A malicious keeper's message that violates the protocol ends the connection and is not passed on.
import {
  encodeFrame,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  KEEPER_PROTOCOL_VERSION,
  uint32s,
  uint64s,
} from '@shellfleet/keeper';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { helloPayload, KEEPER_TOKEN, ScriptedKeeper } from '../../test-support/scripted-keeper.ts';
import { FencedOff } from './keeper-connection.ts';
import { openKeeperShell } from './keeper-shell.ts';
import type { EntryEnd, EntryHandlers, Shell } from './shell.ts';

const token = KEEPER_TOKEN;
const fence = 5;

const honest = (frame: Frame, keeper: ScriptedKeeper) => {
  if (frame.type === FrameType.claim) keeper.say({ type: FrameType.hello, payload: helloPayload() });
};

function follow(shell: Shell): string[] {
  const log: string[] = [];
  shell.on({
    onLate: (_, stream, offset, bytes) => log.push(`late ${stream} ${offset} ${Buffer.from(bytes).toString()}`),
    onShell: ({ shellNumber }) => log.push(`shell ${shellNumber}`),
    onGone: (reason) => log.push(`gone ${reason}`),
  });
  return log;
}

function handlersInto(log: string[], received = { stdout: 0, stderr: 0 }): EntryHandlers {
  return {
    onOutput: (stream, offset, bytes) => log.push(`${stream} ${offset} ${Buffer.from(bytes).toString()}`),
    received: () => received,
  };
}

function endPayload(stdout: number): Buffer {
  return Buffer.concat([
    Buffer.from(Int32Array.of(0).buffer),
    Uint8Array.of(0, 0, 0, 1),
    uint32s(1, 1),
    uint64s(stdout, 0, 1_500, 4_096),
  ]);
}

interface Running {
  keeper: ScriptedKeeper;
  id: Uint8Array;
  log: string[];
  shell: Shell;
  ended: Promise<EntryEnd>;
}

async function running(): Promise<Running> {
  const keeper = new ScriptedKeeper(fence, honest);
  const shell = await openKeeperShell({ transport: keeper, fence, token });
  const log = follow(shell);
  const entryId = ulid();
  const ended = shell.start({ type: 'command', entryId, script: 'true' }, handlersInto(log));
  return { keeper, id: entryIdToBytes(entryId), log, shell, ended };
}

describe('a shell over its keeper', () => {
  test('reports output, end, late output and disconnection in order', async () => {
    const { keeper, id, log, ended } = await running();
    const logged = ended.then((end) =>
      log.push(`end ${end.type === 'ended' ? `${end.end.reason} ${JSON.stringify(end.end.usage)}` : end.type}`),
    );
    keeper.say({ type: FrameType.output, id, offset: 0, payload: Buffer.from('ab') });
    keeper.say({ type: FrameType.output, id, offset: 2, payload: Buffer.from('c') });
    keeper.say({ type: FrameType.end, id, payload: endPayload(3) });
    await logged;
    keeper.say({ type: FrameType.late, id, offset: 3, payload: Buffer.from('d') });
    keeper.hangUp();
    const ending = 'end exited {"cpuMs":2,"peakMemoryBytes":4096}';
    expect(log).toEqual(['stdout 0 ab', 'stdout 2 c', ending, 'late stdout 3 d', 'gone closed']);
  });

  test('frees the memory of delivered output, but not of other frames', async () => {
    const { keeper, id, log } = await running();
    const output = encodeFrame({ fence, type: FrameType.output, id, payload: Buffer.alloc(60_000, 'o') });
    const late = encodeFrame({ fence, type: FrameType.late, id, payload: Buffer.alloc(60_000, 'l') });
    // Cut as a socket cuts them: the second chunk has the end of one frame and the beginning of the next.
    const chunks = [output.subarray(0, 50_000), Buffer.concat([output.subarray(50_000), late.subarray(0, 40_000)])];
    const rest = Buffer.from(late.subarray(40_000));
    for (const chunk of [Buffer.from(chunks[0]!), chunks[1]!, rest]) keeper.junk(chunk);
    expect(log).toEqual([`stdout 0 ${'o'.repeat(60_000)}`, `late stdout 0 ${'l'.repeat(60_000)}`]);
    expect([chunks[1]!.length, rest.length]).toEqual([0, 20_040]);
  });

  test.each<[string, (keeper: ScriptedKeeper, id: Uint8Array) => void]>([
    ['a gap', (keeper, id) => keeper.say({ type: FrameType.output, id, offset: 5, payload: Buffer.from('x') })],
    ['an end before its output', (keeper, id) => keeper.say({ type: FrameType.end, id, payload: endPayload(9) })],
    [
      'an end with invalid fields',
      (keeper, id) => keeper.say({ type: FrameType.end, id, payload: Buffer.alloc(48, 255) }),
    ],
    ['output of an unknown stream', (keeper, id) => keeper.say({ type: FrameType.output, id, stream: 2 })],
    ['a refusal with an unknown reason', (keeper, id) => keeper.say({ type: FrameType.refused, id, flags: 99 })],
    ['a frame that only workers send', (keeper) => keeper.say({ type: FrameType.start })],
    ['a frame that is too long', (keeper) => keeper.junk(Buffer.alloc(40, 255))],
  ])('closes the connection at %s, and handles no later frame', async (_, lie) => {
    const { keeper, id, log, ended } = await running();
    lie(keeper, id);
    keeper.say({ type: FrameType.output, id, offset: 0, payload: Buffer.from('after') });
    expect(log).toEqual(['gone malformed']);
    expect(await ended).toEqual({ type: 'gone', reason: 'malformed' });
    expect(keeper.closed).toBe(true);
  });

  test('delivers no output of an entry that was given up', async () => {
    const { keeper, log } = await running();
    const other = entryIdToBytes(ulid());
    keeper.say({ type: FrameType.output, id: other, offset: 77, payload: Buffer.from('x') });
    keeper.say({ type: FrameType.end, id: other, payload: endPayload(78) });
    expect(log).toEqual([]);
  });

  test('resumes each stream at its acknowledged offset if that is higher', async () => {
    const id = entryIdToBytes(ulid());
    const keeper = new ScriptedKeeper(fence, (frame, it) => {
      if (frame.type === FrameType.claim)
        it.say({ type: FrameType.hello, id, payload: helloPayload({ acked: [5, 1] }) });
    });
    const shell = await openKeeperShell({ transport: keeper, fence, token });
    const log = follow(shell);
    const ended = shell.resume(entryIdFromBytes(id), handlersInto(log, { stdout: 2, stderr: 3 }));
    expect(keeper.heard.at(-1)).toMatchObject({ type: FrameType.resume, payload: uint64s(5, 3) });
    keeper.say({ type: FrameType.output, id, offset: 5, payload: Buffer.from('x') });
    keeper.say({ type: FrameType.output, id, stream: 1, offset: 3, payload: Buffer.from('y') });
    expect(log).toEqual(['stdout 5 x', 'stderr 3 y']);
    keeper.hangUp();
    expect(await ended).toEqual({ type: 'gone', reason: 'closed' });
    expect(await shell.resume(entryIdFromBytes(id), handlersInto(log))).toEqual({ type: 'gone', reason: 'closed' });
  });

  test('delivers frames after the hello once the handlers are set', async () => {
    const keeper = new ScriptedKeeper(fence, (frame, it) => {
      honest(frame, it);
      if (frame.type === FrameType.claim) it.say({ type: FrameType.shell, offset: 2 });
    });
    const shell = await openKeeperShell({ transport: keeper, fence, token });
    expect(follow(shell)).toEqual(['shell 2']);
  });

  test.each([
    ['another token', { token: 'b'.repeat(64) }, 'token'],
    ['another version', { version: KEEPER_PROTOCOL_VERSION - 1 }, 'protocol version'],
  ])('does not claim a keeper with %s', async (_, changes, words) => {
    const keeper = new ScriptedKeeper(fence, (_frame, it) =>
      it.say({ type: FrameType.hello, payload: helloPayload(changes) }),
    );
    await expect(openKeeperShell({ transport: keeper, fence, token })).rejects.toThrow(words);
    expect(keeper.closed).toBe(true);
  });

  test('fails at a hello with a higher fence, at any time', async () => {
    const higher = (_frame: Frame, it: ScriptedKeeper) =>
      it.say({ type: FrameType.hello, fence: 6, payload: helloPayload() });
    await expect(
      openKeeperShell({ transport: new ScriptedKeeper(fence, higher), fence, token }),
    ).rejects.toBeInstanceOf(FencedOff);
    const { keeper, log } = await running();
    keeper.say({ type: FrameType.hello, fence: 6, payload: helloPayload() });
    expect(log).toEqual(['gone fenced']);
  });

  test.each([
    ['is unknown before the first command', undefined, {}],
    ['is the loop after a command without the builtin', 'loop', { begun: 1 }],
    ['is the builtin when the shell has it', 'builtin', { state: 1 << 16 }],
  ])('tells how commands get into the shell, which %s', async (_, way, fields) => {
    const keeper = new ScriptedKeeper(fence, (frame, it) => {
      if (frame.type === FrameType.claim) it.say({ type: FrameType.hello, payload: helloPayload(fields) });
    });
    expect((await openKeeperShell({ transport: keeper, fence, token })).way).toBe(way);
  });

  test('rejects a pending request when the connection closes', async () => {
    const { keeper, shell } = await running();
    const asked = shell.background();
    keeper.hangUp();
    await expect(asked).rejects.toThrow('closed');
    await expect(shell.background()).rejects.toThrow('no connection');
  });
});
