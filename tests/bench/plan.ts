import { parseArgs } from 'node:util';
import type { FloodAmounts } from './parts/floods.ts';
import type { PeerAmounts } from './parts/peers.ts';
import { ROW_NAMES, type RowName } from './rows/row.ts';

/** The parts of a run, and the amounts of work in each. */
export interface Plan {
  quick: boolean;
  /** Whether a missed target, or a ratio that is worse than the recorded ones, is a failure. */
  gate: boolean;
  /** Whether the run is written to docs/. */
  record: boolean;
  /** Whether the worker serves metrics, which are then read as a Prometheus reads them. */
  metrics: boolean;
  /** Parts that are measured. The row of Shellfleet always is. */
  parts: readonly Part[];
  rounds: number;
  /**
   * Number of commands that a row runs before its first measured round: first as a load of few sessions, then one at a
   * time.
   */
  warmUp: Record<RowName, { perSession: number; idle: number }>;
  /** Number of commands of each script that run in one round, one at a time. */
  idleSamples: Record<RowName, number>;
  coldStarts: number;
  /** starts of sessions from a pool in the whole run */
  warmStarts: number;
  few: Load;
  many: Load;
  idleSeconds: number;
  floods: FloodAmounts;
  /** number of calls of a tool in one round, one at a time */
  toolCalls: number;
  /** number of processes of each program in one round */
  cliCalls: number;
  peers: PeerAmounts;
}

/**
 * A load: the number of sessions, and for each row the number of commands per session in a round. A row without that
 * number is not measured under this load.
 */
export interface Load {
  sessions: number;
  perSession: Partial<Record<RowName, number>>;
}

/** The rows other than that of Shellfleet. */
export const OTHER_ROWS = ROW_NAMES.filter((name) => name !== 'shellfleet');
/** The parts that are measured besides the rows. */
const EXTRAS = ['warm-starts', 'floods', 'tool-calls', 'cli', 'output', 'peers'] as const;
const PARTS = [...OTHER_ROWS, ...EXTRAS];
export type Part = (typeof PARTS)[number];

type Amounts = Omit<Plan, 'quick' | 'gate' | 'record' | 'metrics' | 'parts'>;

/**
 * Warm-up of the rows with Redis. A worker is slower by up to a half in its first 15,000 commands, while V8 compiles
 * it.
 */
const compiled = { perSession: 950, idle: 2_000 };
const program = { perSession: 0, idle: 10 };
const pipe = { perSession: 100, idle: 500 };

const full: Amounts = {
  rounds: 5,
  warmUp: {
    floor: compiled,
    bullmq: compiled,
    'docker-exec': program,
    'docker-exec-cli': program,
    'docker-attach': pipe,
    'node-pty': pipe,
    shellfleet: compiled,
  },
  idleSamples: {
    floor: 600,
    bullmq: 600,
    'docker-exec': 40,
    'docker-exec-cli': 30,
    'docker-attach': 300,
    'node-pty': 300,
    shellfleet: 600,
  },
  coldStarts: 2,
  warmStarts: 10,
  few: {
    sessions: 16,
    perSession: {
      floor: 200,
      bullmq: 200,
      'docker-exec': 4,
      'docker-exec-cli': 4,
      'docker-attach': 100,
      'node-pty': 100,
      shellfleet: 200,
    },
  },
  many: { sessions: 100, perSession: { floor: 40, bullmq: 40, shellfleet: 40 } },
  idleSeconds: 10,
  floods: { bytes: 200_000_000, attachedBytes: 4_000_000_000, besideSeconds: 1 },
  toolCalls: 15,
  cliCalls: 10,
  peers: {
    idle: { 'bash-pipe': 300, execa: 40 },
    perSession: { 'bash-pipe': 100, execa: 5 },
  },
};

const little = { perSession: 1, idle: 1 };

/** Small amounts of work for a test of the benchmark itself. The figures mean nothing. */
const quick: Amounts = {
  rounds: 1,
  warmUp: {
    floor: little,
    bullmq: little,
    'docker-exec': little,
    'docker-exec-cli': little,
    'docker-attach': little,
    'node-pty': little,
    shellfleet: little,
  },
  idleSamples: {
    floor: 20,
    bullmq: 20,
    'docker-exec': 5,
    'docker-exec-cli': 3,
    'docker-attach': 20,
    'node-pty': 20,
    shellfleet: 20,
  },
  coldStarts: 1,
  warmStarts: 2,
  few: {
    sessions: 2,
    perSession: {
      floor: 20,
      bullmq: 20,
      'docker-exec': 2,
      'docker-exec-cli': 1,
      'docker-attach': 20,
      'node-pty': 20,
      shellfleet: 20,
    },
  },
  many: { sessions: 6, perSession: { floor: 10, bullmq: 10, shellfleet: 10 } },
  idleSeconds: 1,
  floods: { bytes: 5_000_000, attachedBytes: 20_000_000, besideSeconds: 0.1 },
  toolCalls: 2,
  cliCalls: 1,
  peers: {
    idle: { 'bash-pipe': 10, execa: 5 },
    perSession: { 'bash-pipe': 5, execa: 1 },
  },
};

/** Parts that compile the packages, or have amounts of their own. */
const slowToPrepare = new Set<Part>(['cli', 'output']);

export function readPlan(args: string[]): Plan {
  const options = {
    quick: { type: 'boolean', default: false },
    'no-gate': { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    metrics: { type: 'boolean', default: false },
    only: { type: 'string' },
  } as const;
  const { values } = parseArgs({ args, options });
  const { quick: isQuick, only, record, metrics } = values;
  if (record && (isQuick || metrics || only !== undefined))
    throw new Error('--record is for whole runs: leave out --quick, --metrics and --only');
  return {
    ...(isQuick ? quick : full),
    quick: isQuick,
    gate: !values['no-gate'],
    record,
    metrics,
    parts: only !== undefined ? readParts(only) : isQuick ? PARTS.filter((part) => !slowToPrepare.has(part)) : PARTS,
  };
}

function readParts(only: string): Part[] {
  return only.split(',').map((name) => {
    const part = PARTS.find((each) => each === name);
    if (part === undefined)
      throw new Error(`--only takes names of ${PARTS.join(', ')}; ${JSON.stringify(name)} is none`);
    return part;
  });
}
