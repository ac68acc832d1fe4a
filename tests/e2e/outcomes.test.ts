import type { Result, RunOptions, SessionSpec } from '@shellfleet/client';
import { wireResultSchema } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Every way in which a command or a shell can end, each with the reason that its Result gives.

let stack: TestFleet;
let worker: TestWorker;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, worker, inspect } = await startInspectedFleet());
});
afterAll(() => endInspectedFleet(stack, inspect));

interface Ending {
  script: string;
  options?: RunOptions;
  spec?: SessionSpec;
  /** Ends the command from outside, once it has printed something. */
  meanwhile?: (session: string, cancel: () => Promise<unknown>) => Promise<unknown>;
  result: Partial<Result>;
}

const removeContainer = async (id: string) => (await inspect.container(id)).remove({ force: true });
const QUICK = 20;
const KEPT = { state: 'kept', epoch: 1 } as const;
const long = 'echo begun; sleep 600';

const ENDINGS: Record<string, Ending> = {
  exited: { script: 'exit 3', result: { outcome: 'failure', exitCode: 3, reason: 'exited' } },
  signalled: {
    script: 'kill -9 $$',
    result: {
      outcome: 'failure',
      exitCode: 137,
      signal: 'SIGKILL',
      reason: 'signalled',
      shell: { state: 'lost', epoch: 2, reason: 'the shell was killed by a signal' },
    },
  },
  wall: {
    script: long,
    options: { timeoutMs: 300 },
    result: { outcome: 'timeout', exitCode: null, reason: 'wall', shell: KEPT },
  },
  'no-output': {
    script: long,
    options: { noOutputTimeoutMs: 300 },
    result: { outcome: 'timeout', exitCode: null, reason: 'no-output', shell: KEPT },
  },
  oom: {
    script: 'tail /dev/zero',
    spec: { limits: { memoryBytes: 64 << 20 } },
    result: { outcome: 'failure', exitCode: 137, reason: 'oom', shell: KEPT },
  },
  cancelled: {
    script: long,
    meanwhile: (_session, cancel) => cancel(),
    result: { outcome: 'cancellation', exitCode: null, reason: 'cancelled', cancelReason: 'not needed any more' },
  },
  'host-ended': {
    script: long,
    meanwhile: async () => {
      await worker.stop('SIGINT');
      await worker.start();
    },
    result: { outcome: 'cancellation', exitCode: null, reason: 'cancelled', cancelReason: 'the host was shut down' },
  },
  'container-removed': {
    script: long,
    meanwhile: removeContainer,
    result: {
      outcome: 'error',
      reason: 'container-removed',
      shell: { state: 'lost', epoch: 1, reason: 'the sandbox was removed' },
    },
  },
};

describe('the Result', () => {
  test.each(Object.entries(ENDINGS))(
    'has outcome and reason of a command: %s',
    async (name, { script, options, spec, meanwhile, result }) => {
      const session = await stack.fleet.session(name, spec);
      const command = await session.submit(script, options);
      if (meanwhile !== undefined) {
        await inspect.untilOutput(name);
        await meanwhile(name, () => command.cancel('not needed any more'));
      }
      const ended = await command.result();
      expect(ended).toMatchObject(result);
      const completed = (await inspect.events(name)).filter(({ type }) => type === 'command.completed').at(-1);
      const stored = JSON.parse(completed?.data.toString() ?? '{}');
      const { outcome, reason, cancelReason } = { ...wireResultSchema.parse(stored) } as Result;
      expect({ outcome, reason, cancelReason }).toEqual({
        outcome: ended.outcome,
        reason: ended.reason,
        cancelReason: ended.cancelReason,
      });
      await session.close();
    },
  );

  /** Loses the shell of a session between two commands. */
  const LOSSES: Record<string, { lose(id: string): Promise<unknown>; spec?: SessionSpec; reason: string }> = {
    idleness: {
      spec: { idleTimeoutMs: 200 },
      lose: async (id) => {
        const session = await stack.fleet.session(id);
        await until(
          () => session.info(),
          ({ state }) => state === 'lost',
        );
      },
      reason: 'it was idle for 200 ms',
    },
    'its lifetime': {
      spec: { maxLifetimeMs: 200 },
      lose: async (id) => {
        const session = await stack.fleet.session(id);
        await until(
          () => session.info(),
          ({ state }) => state === 'lost',
        );
      },
      reason: 'it reached its lifetime of 200 ms',
    },
    restart: { lose: async (id) => (await stack.fleet.session(id)).restart(), reason: 'restarted' },
    'removal of its sandbox': {
      lose: removeContainer,
      // The first reason applies when the host noticed the loss before the next command arrived.
      reason: expect.stringMatching(/^(its container is gone|the sandbox was removed)$/),
    },
    'the end of its fleet, and a new start': {
      lose: async () => {
        await worker.stop('SIGINT');
        await worker.start();
      },
      reason: 'the host was shut down',
    },
    'the death of worker and sandbox': {
      lose: async (id) => {
        await worker.kill();
        await removeContainer(id);
        await worker.start();
      },
      reason: 'its sandbox was gone when its worker came back',
    },
  };

  test.each(Object.entries(LOSSES))('reports a shell that is lost by %s', async (name, { lose, spec, reason }) => {
    const id = name.replaceAll(/[^a-z]+/g, '-');
    const session = await stack.fleet.session(id, spec);
    await session.run('kept=1');
    await lose(id);
    const next = await session.run('echo "[$kept]"');
    // A restart is an entry itself, so its own Result has already reported the new shell.
    const shell = name === 'restart' ? { state: 'kept', epoch: 2 } : { state: 'lost', epoch: 2, reason };
    expect(next).toMatchObject({ stdout: '[]\n', shell });
    await session.close();
  });

  // S1-58: a fixed wait for late output would lengthen every command.
  test('arrives without a fixed wait for late output', async () => {
    const session = await stack.fleet.session('quick');
    const runMs: number[] = [];
    for (let index = 0; index < QUICK; index += 1)
      runMs.push((await session.run('echo out; echo err >&2')).timings.runMs);
    expect(Math.min(...runMs)).toBeLessThan(40);
  });
});
