import type { Result } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { slowdown } from '../support/slowdown.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when a worker is killed or upgraded on a living host, shells live on. The running command is adopted with
// its complete output and exit code, and runs once. Shells answer again within 1.5 s.

/**
 * Time in which a shell answers after a restart, on the machine for which the limits are meant. A slower or busier one
 * gets more in proportion.
 */
const ANSWERS_WITHIN_MS = 1_500;
const RESTARTS = 3;

const counted = (lines: number): string => Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join('');

describe.each(['socket', 'attach'] as const)('a worker killed with SIGKILL over %s', (transport) => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;

  beforeAll(async () => {
    ({ stack, worker, inspect } = await startInspectedFleet({ transport }));
  });
  afterAll(() => endInspectedFleet(stack, inspect));

  test('leaves shells with their state, and answers again within 1.5 s', async () => {
    const session = await stack.fleet.session('kept');
    await session.run(
      'X=before; export Y=too; f() { echo "f:$X"; }; cd /tmp; set -- one two; sleep 1000 & echo $! > pid',
    );
    const restarts: { tookMs: number; allowedMs: number }[] = [];
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      await worker.kill();
      const before = await slowdown();
      const from = performance.now();
      const started = worker.start();
      const result = await session.run('f; echo $Y "$PWD" $# ; kill -0 "$(cat pid)" && echo background lives');
      const tookMs = Math.round(performance.now() - from);
      expect(result).toMatchObject({ outcome: 'success', shell: { state: 'kept', epoch: 1 } });
      expect(result.stdout).toBe('f:before\ntoo /tmp 2\nbackground lives\n');
      await started;
      // The machine may have become slower or faster during the test.
      const factor = Math.max(before, await slowdown());
      restarts.push({ tookMs, allowedMs: Math.round(ANSWERS_WITHIN_MS * factor) });
    }
    const figures = restarts.map(({ tookMs, allowedMs }) => `${tookMs} of ${allowedMs}`).join(', ');
    console.info(`over ${transport}: answered ${figures} ms after the restart began`);
    expect(restarts.filter(({ tookMs, allowedMs }) => tookMs > allowedMs)).toEqual([]);
    expect(await inspect.broken('kept')).toEqual([]);
  });

  test('leaves a running command to the next worker: whole output, exit code, one run', async () => {
    const session = await stack.fleet.session('adopted');
    const script = 'echo ran >> /tmp/runs; for i in $(seq 1 40); do echo $i; echo e$i >&2; sleep 0.05; done; (exit 7)';
    const command = await session.submit(script);
    const queued = session.run('cat /tmp/runs');
    const streamed: string[] = [];
    const following = (async () => {
      for await (const chunk of command.output()) if (chunk.stream === 'stdout') streamed.push(chunk.text);
    })();
    await until(
      () => streamed.length,
      (count) => count > 3,
    );
    await worker.kill();
    await worker.start();
    expect(await command.result()).toMatchObject({
      outcome: 'failure',
      exitCode: 7,
      stdout: counted(40),
      stderr: counted(40).replaceAll(/^/gm, 'e').replace(/e$/, ''),
      shell: { state: 'kept' },
    } satisfies Partial<Result> | object);
    await following;
    expect(streamed.join('')).toBe(counted(40));
    expect((await queued).stdout).toBe('ran\n');
    expect(await inspect.broken('adopted', [command.id])).toEqual([]);
  });

  test('does not affect a command that ended without a worker', async () => {
    const session = await stack.fleet.session('ended');
    const command = await session.submit('echo begun; sleep 0.5; echo over; kept=yes; (exit 3)');
    await inspect.untilOutput('ended');
    await worker.kill();
    const container = (await inspect.containers('ended'))[0]?.id ?? '';
    // The keeper is idle again when the shell has reported the end.
    await until(
      () => inspect.docker.getContainer(container).top({ ps_args: '-o pid,args' }),
      ({ Processes }) => !JSON.stringify(Processes).includes('sleep 0.5'),
    );
    await worker.start();
    expect(await command.result()).toMatchObject({ outcome: 'failure', exitCode: 3, stdout: 'begun\nover\n' });
    expect((await session.run('echo $kept')).stdout).toBe('yes\n');
    expect(await inspect.broken('ended', [command.id])).toEqual([]);
  });

  // invariant 5
  test('is followed by a worker that prepares a shell in place of a killed one', async () => {
    const spec = { env: { GIVEN: 'given' }, startupCommands: ['started=up'], cwd: '/tmp' };
    const session = await stack.fleet.session('replaced', spec);
    const command = await session.submit('echo begun; sleep 0.5; kill -9 $$');
    await inspect.untilOutput('replaced');
    await worker.kill();
    const container = (await inspect.containers('replaced'))[0]?.id ?? '';
    await until(
      () => inspect.docker.getContainer(container).top({ ps_args: '-o pid,args' }),
      ({ Processes }) => !JSON.stringify(Processes).includes('sleep 0.5'),
    );
    await worker.start();
    expect(await command.result()).toMatchObject({ stdout: 'begun\n', shell: { state: 'lost', epoch: 2 } });
    const next = await session.run('echo $GIVEN $started $PWD');
    expect(next).toMatchObject({ stdout: 'given up /tmp\n', shell: { epoch: 2 } });
    expect(await inspect.broken('replaced', [command.id])).toEqual([]);
  });
});
