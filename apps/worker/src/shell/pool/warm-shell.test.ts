import { FrameType } from '@shellfleet/keeper';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { helloPayload, KEEPER_TOKEN, ScriptedKeeper } from '../../../test-support/scripted-keeper.ts';
import type { UnassignedSandbox } from '../../sandbox/sandbox.ts';
import { claimKeeper } from '../keeper-connection.ts';
import { WarmShell } from './warm-shell.ts';

const token = KEEPER_TOKEN;
const sandbox = { link: { token } } as UnassignedSandbox;
const options = { deadlineMs: 200, onMessage: () => {} };

/** A keeper with the highest fence of a claim so far, which reports this number of shells and of begun entries. */
const keeper = { fence: 0, shells: 1, begun: 0, answers: true, fences: [] as number[], hangUp: () => {} };

vi.mock('../connect-shell.ts', () => ({
  connectKeeper: (_sandbox: unknown, { fence }: { fence: number }) => {
    const transport = new ScriptedKeeper(fence, (frame, it) => {
      keeper.fences.push(frame.fence);
      if (!keeper.answers || frame.type !== FrameType.claim) return;
      keeper.fence = Math.max(keeper.fence, frame.fence);
      it.say({ type: FrameType.hello, fence: keeper.fence, payload: helloPayload(keeper) });
    });
    keeper.hangUp = () => transport.hangUp();
    return claimKeeper({ transport, fence, token });
  },
}));

beforeEach(() => {
  Object.assign(keeper, { fence: 0, shells: 1, begun: 0, answers: true, fences: [] });
});

describe('a shell that waits for a session', () => {
  test('is claimed again by the owner of the session, over the same connection', async () => {
    const warm = await WarmShell.start(sandbox, options);
    const shell = await warm.handOver(7, options);
    expect([keeper.fences, shell.connected, shell.hello]).toMatchObject([
      ...[[0, 7], true, { state: 'idle', shellNumber: 1, begunCount: 0 }],
    ]);
    shell.disconnect();
  });

  test.each([
    ['another shell has replaced it', { shells: 2 }],
    ['an entry has begun on it', { begun: 1 }],
  ])('is refused when %s', async (_, change) => {
    const warm = await WarmShell.start(sandbox, options);
    Object.assign(keeper, change);
    await expect(warm.handOver(7, options)).rejects.toThrow('Its shell is not fresh');
    keeper.fence = 0;
    await expect(WarmShell.start(sandbox, options)).rejects.toThrow('Its shell is not fresh');
  });

  test('is refused when its keeper does not answer in time, or has hung up', async () => {
    const silent = await WarmShell.start(sandbox, options);
    keeper.answers = false;
    await expect(silent.handOver(7, options)).rejects.toThrow('timeout');
    Object.assign(keeper, { answers: true, fence: 0 });
    const gone = await WarmShell.start(sandbox, options);
    expect(gone.connected).toBe(true);
    keeper.hangUp();
    await gone.gone;
    expect(gone.connected).toBe(false);
    await expect(gone.handOver(7, options)).rejects.toThrow('ended before it was claimed');
  });
});
