import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStage } from '../stage/open-stage.ts';
import type { KubernetesStage } from '../stage/stage.ts';

// Promise: sessions outlive their workers. What runs goes on, and its output is whole.

let stage: KubernetesStage;
let ids = 0;

const open = () => stage.fleet.session(`w-${++ids}-${process.pid}`, stage.spec);
/** Prints numbers for some seconds. */
const COUNT = 'for i in $(seq 1 40); do echo $i; sleep 0.25; done';
const COUNTED = Array.from({ length: 40 }, (_, index) => `${index + 1}\n`).join('');

beforeAll(async () => {
  stage = await openStage();
}, 120_000);
afterAll(() => stage?.[Symbol.asyncDispose]());

describe('a session whose worker ends', () => {
  test('in a rollout keeps its shell, and the output of its command is whole', async () => {
    const session = await open();
    await session.run('X=kept');
    const command = await session.submit(COUNT);
    await expect.poll(async () => (await session.info()).runningCommandId).toBe(command.id);
    await stage.rollOut();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: COUNTED, shell: { epoch: 1 } });
    expect(await session.run('echo $X')).toMatchObject({ stdout: 'kept\n', shell: { epoch: 1 } });
    await session.close();
  }, 360_000);

  test('without warning keeps its shell, and the output of its command is whole', async () => {
    const session = await open();
    const { hostId } = await session.run('X=kept');
    const command = await session.submit(COUNT);
    await expect.poll(async () => (await session.info()).runningCommandId).toBe(command.id);
    await stage.killWorker(hostId ?? '');
    const ended = await command.result();
    expect(ended).toMatchObject({ outcome: 'success', stdout: COUNTED, shell: { epoch: 1 } });
    const next = await session.run('echo $X');
    expect(next).toMatchObject({ stdout: 'kept\n', shell: { epoch: 1 } });
    expect(next.hostId).not.toBe(hostId);
    await session.close();
  }, 120_000);
});
