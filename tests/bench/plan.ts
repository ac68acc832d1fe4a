import { parseArgs } from 'node:util';
import type { RowName } from './rows/row.ts';

/** The amount of measuring. */
export interface Plan {
  quick: boolean;
  /** Whether a missed target is a failure. */
  gate: boolean;
  rounds: number;
  /** Commands of one script in one round, one at a time. */
  idleSamples: Record<RowName, number>;
  coldStarts: number;
  few: Load;
  many: Load;
  idleSeconds: number;
}

/** A number of sessions, and the commands that are queued at once in each. */
export interface Load {
  sessions: number;
  perSession: Record<RowName, number>;
}

const full: Omit<Plan, 'quick' | 'gate'> = {
  rounds: 5,
  idleSamples: { floor: 300, bullmq: 300, 'docker-exec': 60, shellfleet: 300 },
  coldStarts: 2,
  few: { sessions: 16, perSession: { floor: 200, bullmq: 200, 'docker-exec': 6, shellfleet: 200 } },
  many: { sessions: 100, perSession: { floor: 40, bullmq: 40, 'docker-exec': 1, shellfleet: 40 } },
  idleSeconds: 10,
};

/** Only to see that everything works: its figures mean nothing. */
const quick: Omit<Plan, 'quick' | 'gate'> = {
  rounds: 1,
  idleSamples: { floor: 20, bullmq: 20, 'docker-exec': 5, shellfleet: 20 },
  coldStarts: 1,
  few: { sessions: 2, perSession: { floor: 20, bullmq: 20, 'docker-exec': 2, shellfleet: 20 } },
  many: { sessions: 6, perSession: { floor: 10, bullmq: 10, 'docker-exec': 1, shellfleet: 10 } },
  idleSeconds: 1,
};

export function readPlan(args: string[]): Plan {
  const options = { quick: { type: 'boolean' }, 'no-gate': { type: 'boolean' } } as const;
  const { values } = parseArgs({ args, options });
  const gate = values['no-gate'] !== true;
  return values.quick === true ? { ...quick, quick: true, gate } : { ...full, quick: false, gate };
}
