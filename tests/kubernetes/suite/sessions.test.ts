import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStage } from '../stage/open-stage.ts';
import { listSessionPods, type PodView, podOf } from '../stage/pods.ts';
import type { KubernetesStage } from '../stage/stage.ts';

// Promise: a session of policy `kubernetes` is a Pod, and behaves as a session of any other policy. The tests run at
// the same time, so none of them may disturb another session.

let stage: KubernetesStage;
let ids = 0;

/** Opens a session that no other test has. */
const open = (limits = {}, spec = {}) =>
  stage.fleet.session(`s-${++ids}-${process.pid}`, {
    ...{ ...stage.spec, ...spec },
    limits: { ...stage.spec.limits, ...limits },
  });
/** Port of the keeper in each Pod. */
const KEEPER_PORT = 7443;
/** Time between two looks through kubectl, each of which is a process. */
const LOOK = { interval: 500 };

beforeAll(async () => {
  stage = await openStage();
}, 120_000);
afterAll(() => stage?.[Symbol.asyncDispose]());

describe.concurrent('a session in a Pod', () => {
  test('keeps the state of its shell, and tells its node', async () => {
    const session = await open();
    expect(await session.run('cd /tmp && export COLOUR=green')).toMatchObject({
      outcome: 'success',
      shell: { epoch: 1 },
    });
    expect(await session.run('echo "$COLOUR $PWD"; echo aside >&2; (exit 7)')).toMatchObject({
      ...{ outcome: 'failure', exitCode: 7, stdout: 'green /tmp\n', stderr: 'aside\n', shell: { epoch: 1 } },
    });
    expect(await session.info()).toMatchObject({ node: expect.stringMatching(/./), state: 'ready' });
    await session.close();
  });

  test('delivers all of a large output in order', async () => {
    const session = await open();
    const command = await session.submit('seq 1 300000');
    let [last, lines, rest] = [0, 0, ''];
    for await (const chunk of command.output()) {
      const parts = (rest + Buffer.from(chunk.data).toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) {
        if (Number(line) !== last + 1) throw new Error(`${line} follows ${last}`);
        last += 1;
        lines += 1;
      }
    }
    expect({ lines, rest, outcome: (await command.result()).outcome }).toEqual({
      ...{ lines: 300_000, rest: '', outcome: 'success' },
    });
    await session.close();
  });

  test('ends a command at its timeout, and keeps the shell', async () => {
    const session = await open();
    await session.run('X=kept');
    expect(await session.run('sleep 60', { timeoutMs: 500 })).toMatchObject({ outcome: 'timeout' });
    expect(await session.run('echo $X')).toMatchObject({ stdout: 'kept\n', shell: { epoch: 1 } });
    await session.close();
  });

  test('has files that are written and read from outside', async () => {
    const session = await open();
    await session.files.write('/workspace/in.txt', 'from outside\n');
    expect(await session.run('cat in.txt && echo from inside > out.txt')).toMatchObject({ stdout: 'from outside\n' });
    expect(await session.files.readText('/workspace/out.txt')).toBe('from inside\n');
    await session.close();
  });

  test('knows neither the keys of its link nor a token of the cluster', async () => {
    const session = await open();
    const { stdout } = await session.run(
      'env; tr "\\0" "\\n" < /proc/1/environ 2>/dev/null; ls /var/run/secrets/kubernetes.io 2>&1; true',
    );
    expect(stdout).not.toMatch(/SF_LINK|SF_TOKEN/);
    expect(stdout).toMatch(/No such file|cannot access/);
    await session.close();
  });

  test('has a Pod without rights, whose containers print nothing', async ({ expect }) => {
    const session = await open();
    await session.run('true');
    const pod = await podOf(stage.kubectl, session.id);
    expect(pod.spec).toMatchObject({
      ...{ automountServiceAccountToken: false, restartPolicy: 'Never', enableServiceLinks: false },
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          securityContext: {
            ...{ allowPrivilegeEscalation: false, privileged: false },
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    });
    await session.close();
    await expect.poll(async () => isThere(pod), LOOK).toBe(false);
  });
});

describe.concurrent('a Pod that ends', () => {
  test('for its memory loses the shell, and says so', async () => {
    const session = await open({ memoryBytes: 128 * 2 ** 20 });
    await session.run('true');
    // Where the kernel ends one process alone, its command may end before the Pod does.
    const ended = await session.run('head -c 400m /dev/zero | tail', { timeoutMs: 60_000 });
    expect(['error', 'failure']).toContain(ended.outcome);
    let after = await session.run('echo again');
    const reasons = [ended, after].flatMap(({ outcome, reason }) => (outcome === 'error' ? reason : []));
    expect(reasons.filter((reason) => reason !== 'oom')).toEqual([]);
    if (after.outcome === 'error') after = await session.run('echo again');
    expect(after).toMatchObject({ outcome: 'success', stdout: 'again\n' });
    await session.close();
  });

  test('since its node is drained finishes its command first', async ({ expect }) => {
    const session = await open();
    await session.run('true');
    const pod = await podOf(stage.kubectl, session.id);
    const command = await session.submit('sleep 2; echo finished');
    const next = await session.submit('echo next');
    await expect.poll(async () => (await session.info()).runningCommandId).toBe(command.id);
    await stage.kubectl.run(['delete', 'pod', pod.metadata.name, '--wait=false']);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'finished\n', shell: { epoch: 1 } });
    expect(await next.result()).toMatchObject({ outcome: 'success', stdout: 'next\n', shell: { epoch: 2 } });
    await session.close();
  });

  test('since somebody deleted it loses the shell, and the next command gets a new one', async ({ expect }) => {
    const session = await open();
    await session.run('true');
    const pod = await podOf(stage.kubectl, session.id);
    const command = await session.submit('sleep 600');
    await expect.poll(async () => (await session.info()).runningCommandId).toBe(command.id);
    await stage.kubectl.run(['delete', 'pod', pod.metadata.name, '--wait=false', '--grace-period=1']);
    expect(await command.result()).toMatchObject({
      ...{ outcome: 'error', reason: 'container-removed', error: { code: 'CONTAINER_LOST' } },
    });
    expect(await session.run('echo again')).toMatchObject({ outcome: 'success', stdout: 'again\n' });
    await session.close();
  });
});

describe.concurrent('a Pod that cannot start', () => {
  test('for its image is told at once, with the words of the node', async () => {
    const session = await open({}, { image: 'registry.invalid/none:1' });
    const started = Date.now();
    const ended = await session.run('true');
    expect(ended).toMatchObject({ outcome: 'error', error: { code: 'IMAGE_UNAVAILABLE' } });
    expect(ended.error?.message).toContain('registry.invalid/none:1');
    expect(Date.now() - started).toBeLessThan(60_000);
    await session.close();
  });

  test('for want of processors waits, and tells the words of the scheduler', async ({ expect }) => {
    const session = await open({ cpus: 1_000 });
    const command = await session.submit('true');
    await expect
      .poll(async () => JSON.stringify(await session.info()), { timeout: 30_000, interval: 200 })
      .toMatch(/Insufficient cpu/);
    expect(await command.cancel()).toBe(true);
    expect(await command.result()).toMatchObject({ outcome: 'cancellation' });
    await session.close();
  });
});

describe.concurrent('the network of a Pod', () => {
  test('reaches neither the API server nor another session', async (context) => {
    const { network } = stage.impossible;
    context.skip(network !== undefined, network);
    const [session, neighbour] = await Promise.all([open(), open()]);
    await neighbour.run('true');
    const { podIP } = (await podOf(stage.kubectl, neighbour.id)).status;
    expect(podIP).toMatch(/./);
    const { stdout } = await session.run(
      `for at in "$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT" ${podIP}/${KEEPER_PORT} 1.1.1.1/443; do
        echo "$at"; timeout 3 bash -c "exec 3<>/dev/tcp/$at" 2>/dev/null && echo "reached $at"
      done; true`,
    );
    expect(stdout).toMatch(/^[^/]+\/\d+\n/);
    expect(stdout).not.toContain('reached');
    await Promise.all([session.close(), neighbour.close()]);
  });
});

async function isThere(pod: PodView): Promise<boolean> {
  return (await listSessionPods(stage.kubectl)).some(({ metadata }) => metadata.uid === pod.metadata.uid);
}
