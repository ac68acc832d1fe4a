import { setTimeout as delay } from 'node:timers/promises';
import type { FaultKind } from '../check/promises.ts';
import type { Fault } from '../history/history.ts';
import type { PlannedFault } from '../plan/plan-faults.ts';
import { clientFaults } from './client-faults.ts';
import { containerFaults } from './container-faults.ts';
import { diskFaults } from './disk-faults.ts';
import { networkFaults } from './network-faults.ts';
import { redisFaults } from './redis-faults.ts';
import type { Injection, Stage } from './stage.ts';
import { workerFaults } from './worker-faults.ts';

const restartEngine: Injection = async ({ restartEngine }) => {
  if (restartEngine === undefined) return 'only with --restart-engine, and only an engine that this run has started';
  await restartEngine();
  return { target: 'engine', heal: async () => {} };
};

/** Names the test that has sentinels instead of injecting a failover. */
const failOver: Injection = async () => 'tests/chaos/redis-failover.test.ts has it';

const INJECTIONS: Readonly<Record<FaultKind, Injection>> = {
  ...workerFaults,
  ...clientFaults,
  ...containerFaults,
  ...redisFaults,
  ...networkFaults,
  ...diskFaults,
  'redis-failover': failOver,
  'dockerd-restart': restartEngine,
};

/** Injects the faults of one lane, one after the other. Each is recorded in `faults` when it begins. */
export async function injectLane(stage: Stage, lane: PlannedFault[], faults: Fault[], from: number): Promise<void> {
  for (const { kind, atMs, lastsMs, choice } of lane) {
    await delay(Math.max(0, from + atMs - Date.now()));
    const began = Date.now();
    // The fault is recorded before it is injected, because its effects can be seen while it is injected.
    const fault: Fault = { kind, target: '', from: began, to: Number.POSITIVE_INFINITY };
    faults.push(fault);
    const ongoing = await INJECTIONS[kind](stage, choice);
    if (ongoing === undefined || typeof ongoing === 'string') {
      Object.assign(fault, { to: began, notRun: ongoing ?? 'there was nothing to act on' });
      continue;
    }
    fault.target = ongoing.target;
    if (ongoing.restoredTo !== undefined) fault.restoredTo = ongoing.restoredTo;
    await delay(lastsMs);
    await ongoing.heal();
    fault.to = Date.now();
  }
}
