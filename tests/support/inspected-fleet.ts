import { type FleetInspector, inspectFleet } from './inspect-fleet.ts';
import { type FleetOptions, startFleet, type TestFleet, type TestWorker } from './start-fleet.ts';
import { until } from './until.ts';

/** A fleet and its inspector. Disposing of both ends the fleet as endInspectedFleet() does. */
export interface InspectedFleet extends AsyncDisposable {
  stack: TestFleet;
  /** The first of its workers. */
  worker: TestWorker;
  inspect: FleetInspector;
}

/** A fleet and an inspector of it, for tests that kill parts of the fleet. */
export async function startInspectedFleet(options: FleetOptions = {}): Promise<InspectedFleet> {
  const stack = await startFleet(options);
  const inspect = inspectFleet(stack);
  const worker = stack.workers[0] as TestWorker;
  return { stack, worker, inspect, [Symbol.asyncDispose]: () => endInspectedFleet(stack, inspect) };
}

/**
 * Ends the fleet and expects that no container is left. Containers that are left are removed. Does nothing if the start
 * failed.
 */
export async function endInspectedFleet(stack: TestFleet | undefined, inspect: FleetInspector): Promise<void> {
  if (stack === undefined) return;
  try {
    await stack.end();
    await until(
      () => inspect.containers(),
      (left) => left.length === 0,
    );
  } finally {
    await Promise.allSettled([stack[Symbol.asyncDispose](), inspect[Symbol.asyncDispose]()]);
  }
}
