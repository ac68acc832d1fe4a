import { setTimeout as delay } from 'node:timers/promises';
import { isShellfleetError, type Result } from '@shellfleet/client';
import type { FleetInspector } from './inspect-fleet.ts';
import type { TestFleet } from './start-fleet.ts';

/**
 * Commands that callers run one after another, in several sessions at once, while a test hurts the fleet. They go on
 * until the check, or the end of the test.
 */
export interface SessionLoad extends Disposable {
  /** Number of commands whose `run` has returned or thrown. */
  readonly ended: number;
  /**
   * Ends the load. Resolves when every caller is done. Each session is then checked from inside its sandbox, and by its
   * stream.
   */
  check(): Promise<LoadReport>;
}

interface LoadReport {
  /** Number of commands whose caller got a Result. `failed` counts those whose caller got an error. */
  succeeded: number;
  failed: number;
  /**
   * Violations, as sentences: commands that ran twice, did not run as reported or have another one's output, and broken
   * invariants.
   */
  problems: string[];
}

interface LoadOptions {
  sessions: number;
  /** least number of commands in each session */
  commands: number;
}

export function startSessionLoad(
  stack: TestFleet,
  inspect: FleetInspector,
  { sessions, commands }: LoadOptions,
): SessionLoad {
  const ids = Array.from({ length: sessions }, (_, index) => `load-${index}`);
  let ended = 0;
  let isOver = false;
  const runAll = async (id: string) => {
    const session = await stack.fleet.session(id);
    const outcomes: (Result | Error)[] = [];
    for (let index = 0; index < commands || !isOver; index += 1) {
      const script = `echo ${index} >> /tmp/ran; echo ${index}; sleep 0.05`;
      const outcome: Result | Error = await session.run(script).catch((error) => error);
      outcomes.push(outcome);
      ended += 1;
      if (isShellfleetError(outcome)) await delay(200);
    }
    return outcomes;
  };
  const running = Promise.all(ids.map(runAll));
  return {
    get ended() {
      return ended;
    },
    [Symbol.dispose]() {
      isOver = true;
    },
    async check() {
      isOver = true;
      const all = await running;
      const report: LoadReport = { succeeded: 0, failed: 0, problems: [] };
      for (const [index, id] of ids.entries()) {
        const session = await stack.fleet.session(id);
        const ran = (await session.run('cat /tmp/ran')).stdout.trim().split('\n').map(Number);
        for (const [number, outcome] of (all[index] ?? []).entries()) {
          const times = ran.filter((one) => one === number).length;
          const succeeded = 'outcome' in outcome && outcome.outcome === 'success';
          report[succeeded ? 'succeeded' : 'failed'] += 1;
          if (times > 1) report.problems.push(`${id}: command ${number} ran ${times} times`);
          if (succeeded && times === 0) report.problems.push(`${id}: command ${number} succeeded and did not run`);
          if (succeeded && outcome.stdout !== `${number}\n`)
            report.problems.push(`${id}: command ${number} has the output ${JSON.stringify(outcome.stdout)}`);
        }
        report.problems.push(...(await inspect.broken(id)));
      }
      return report;
    },
  };
}
