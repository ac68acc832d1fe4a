// LINK-1: over attach, frames of a dead worker can still be in transit when its successor has claimed the keeper.
import { encodeCommand, encodeFrame, entryIdToBytes, FrameType, uint32s } from '@shellfleet/keeper';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { host, openBox, skipWithoutRoot } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';

const FENCE = 7;

describe.each(['socket', 'attach', ...host] as const)('frames of an earlier fence over %s', (transport) => {
  skipWithoutRoot(transport);

  test('have no effect after a claim with fence 7', async () => {
    await using it = await openBox({ transport });
    it.client.shell.disconnect();
    const client = new ShellClient(await it.box.connect({ fence: FENCE }));
    client.acks = false;
    const entryId = ulid();
    const running = client.run('echo begun; read -r x; echo "read $x"', { entryId, stdin: 'open' });
    running.catch(() => {}); // the call rejects when its connection ends
    await expect.poll(() => client.received('stdout').toString()).toBe('begun\n');

    const id = entryIdToBytes(entryId);
    const sync = transport === 'attach' ? it.box.sync : undefined;
    const send = (frame: Parameters<typeof encodeFrame>[0]) =>
      it.box.wire?.write(encodeFrame({ fence: 1, ...frame }, sync));
    const limits = { timeoutMs: 0, noOutputTimeoutMs: 0, killGraceMs: 0 };
    const script = Buffer.from('touch /tmp/intruder');
    const payload = encodeCommand({ ...limits, script, cwd: '', env: {}, stdin: undefined });
    send({ type: FrameType.stop, id, payload: uint32s(0) });
    send({ type: FrameType.ack, id, stream: 0, offset: 6 });
    send({ type: FrameType.input, id, payload: Buffer.from('of fence 1\n') });
    send({ type: FrameType.start, id: entryIdToBytes(ulid()), payload });
    // The keeper processes frames in order. Once it replies to this request, it has processed all frames before it.
    await client.shell.background();

    client.shell.disconnect();
    const next = new ShellClient(await it.box.connect({ fence: FENCE + 1 }));
    expect(next.shell.hello).toMatchObject({
      state: 'running',
      entryId,
      acked: { stdout: 0, stderr: 0 },
      begunCount: 1,
    });
    const resumed = next.resume(entryId, { stdout: 0, stderr: 0 });
    next.shell.input(entryId, 0, Buffer.from('of fence 8\n'), true);
    expect(await resumed).toMatchObject({ out: 'begun\nread of fence 8\n', code: 0, state: 'kept' });
    expect(await next.run('[ -e /tmp/intruder ] || echo none')).toMatchObject({ out: 'none\n' });
  });
});
