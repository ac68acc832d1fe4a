import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStage } from '../stage/open-stage.ts';
import { listSessionPods } from '../stage/pods.ts';
import type { KubernetesStage } from '../stage/stage.ts';

// Promise: sessions outlive their workers. What runs goes on, and its output is whole. These tests change the workers
// and the quota of the namespace, so each runs alone.

let stage: KubernetesStage;
let ids = 0;

const open = () => stage.fleet.session(`w-${++ids}-${process.pid}`, stage.spec);
/** Prints numbers for as long as the test needs. */
const COUNT = 'i=0; while true; do i=$((i + 1)); echo $i; sleep 0.1; done';

/** Submits COUNT. Returns functions that wait until it has printed more lines, and that end it. */
async function startCounting(session: Session) {
  const command = await session.submit(COUNT);
  let printed = '';
  const reading = (async () => {
    for await (const { data } of command.output()) printed += Buffer.from(data).toString();
  })();
  const goesOn = async () => {
    const before = printed.length;
    await expect.poll(() => printed.length, { interval: 50 }).toBeGreaterThan(before);
  };
  await goesOn();
  return {
    goesOn,
    async end() {
      await command.cancel();
      const ended = await command.result();
      await reading;
      return { ended, lines: printed.trimEnd().split('\n').map(Number) };
    },
  };
}

const countTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

beforeAll(async () => {
  stage = await openStage();
}, 120_000);
afterAll(() => stage?.[Symbol.asyncDispose]());

describe('a session whose worker ends', () => {
  test('in a rollout keeps its shell, and the output of its command is whole', async () => {
    const session = await open();
    await session.run('X=kept');
    const counting = await startCounting(session);
    await stage.rollOut();
    await counting.goesOn();
    const { ended, lines } = await counting.end();
    expect(ended).toMatchObject({ outcome: 'cancellation', shell: { epoch: 1 } });
    expect(lines).toEqual(countTo(lines.length));
    expect(await session.run('echo $X')).toMatchObject({ stdout: 'kept\n', shell: { epoch: 1 } });
    await session.close();
  }, 360_000);

  test('by force keeps its shell, and the output of its command is whole', async () => {
    const session = await open();
    const { hostId } = await session.run('X=kept');
    const counting = await startCounting(session);
    await stage.killWorker(hostId ?? '');
    await expect.poll(async () => (await session.info()).hostId, { interval: 200 }).not.toBe(hostId);
    await counting.goesOn();
    const { ended, lines } = await counting.end();
    expect(ended).toMatchObject({ outcome: 'cancellation', shell: { epoch: 1 } });
    expect(lines).toEqual(countTo(lines.length));
    const next = await session.run('echo $X');
    expect(next).toMatchObject({ stdout: 'kept\n', shell: { epoch: 1 } });
    expect(next.hostId).not.toBe(hostId);
    await session.close();
  }, 120_000);
});

describe('a session without a Pod', () => {
  test('for want of quota waits until there is room', async () => {
    const first = await open();
    await first.run('true');
    await expect.poll(async () => (await listSessionPods(stage.kubectl)).length, { interval: 500 }).toBe(1);
    await stage.setPodQuota(1);
    try {
      const second = await open();
      const command = await second.submit('echo there');
      await expect
        .poll(async () => JSON.stringify(await second.info()), { timeout: 30_000, interval: 200 })
        .toMatch(/exceeded quota/);
      await first.close();
      expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'there\n' });
      await second.close();
    } finally {
      await stage.setPodQuota(undefined);
    }
  });
});
