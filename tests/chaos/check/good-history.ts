import { createHash } from 'node:crypto';
import type { ClientEvent, Fault, History, Mark, Operation, Printed, SeenResult } from '../history/history.ts';
import { check } from './check.ts';

// A history without a fault, for tests that plant one.

export const print = (text: string): Printed => ({
  bytes: Buffer.byteLength(text),
  sha256: createHash('sha256').update(text).digest('hex'),
});

const operation = (index: number): Operation => ({
  id: `s.${index}`,
  session: 's',
  index,
  script: `echo body ${index}`,
  expect: {
    outcome: 'success',
    exitCode: 0,
    stdout: print(`body ${index}\n`),
    stderr: print(''),
    endsShell: false,
  },
  reader: 'steady',
  waits: true,
  pauseMs: 0,
});

export const resultOf = (index: number, changed: Partial<SeenResult> = {}): SeenResult => ({
  outcome: 'success',
  exitCode: 0,
  reason: 'exited',
  head: `s.${index} ${index + 1}`,
  stdout: print(`body ${index}\n`),
  stderr: print(''),
  truncated: false,
  totals: { stdoutBytes: `s.${index} ${index + 1}\nbody ${index}\n`.length, stderrBytes: 0 },
  shell: { state: 'kept', epoch: 1 },
  hostId: 'h1',
  ...changed,
});

export const LOST: Partial<SeenResult> = {
  outcome: 'lost',
  exitCode: null,
  reason: 'host-lost',
  head: '',
  stdout: print(''),
  totals: { stdoutBytes: 0, stderrBytes: 0 },
  shell: { state: 'lost', epoch: 1 },
};

export const SECONDS = 1_000;
/** Returns a history of four commands, one after the other, of a second each, from second 100 on. */
export function good(): History {
  const operations = [0, 1, 2, 3].map(operation);
  const clientEvents = operations.flatMap(({ id, index }): ClientEvent[] => {
    const at = (100 + index) * SECONDS;
    return [
      { at, op: id, type: 'submit' },
      { at: at + 10, op: id, type: 'accepted', commandId: `s.ULID${index}` },
      { at: at + 500, op: id, type: 'result', result: resultOf(index) },
      {
        at: at + 600,
        op: id,
        type: 'output',
        stdout: { ...print(`body ${index}\n`), omittedBytes: 0 },
        stderr: { ...print(''), omittedBytes: 0 },
      },
    ];
  });
  const marks = operations.flatMap(({ id }): Mark[] => [
    { type: 'begin', op: id },
    { type: 'end', op: id },
  ]);
  const terminals = operations.map(({ index }) => ({ commandId: `s.ULID${index}`, outcome: 'success' }));
  return {
    sessions: [{ session: 's', leaseMs: 8 * SECONDS, operations, marks, terminals }],
    clientEvents,
    faults: [],
    begun: operations.map(({ index }) => `s.ULID${index}`),
    forgets: false,
  };
}

export type Session = History['sessions'][number];
const sessionOf = (history: History): Session => history.sessions[0] as Session;

/** Returns the good history with a change. */
export function planted(change: (history: History, session: Session) => void): History {
  const history = good();
  change(history, sessionOf(history));
  return history;
}

export function setResult(history: History, index: number, changed: Partial<SeenResult>): void {
  for (const event of history.clientEvents) {
    if (event.type === 'result' && event.op === `s.${index}`) Object.assign(event.result, changed);
  }
  const terminal = sessionOf(history).terminals[index];
  if (terminal !== undefined && changed.outcome !== undefined) terminal.outcome = changed.outcome;
}

export const fault = (kind: string, target: string, second: number, rest: Partial<Fault> = {}): Fault => ({
  kind,
  target,
  from: second * SECONDS,
  to: (second + 1) * SECONDS,
  ...rest,
});

export const rulesOf = (history: History): string[] => [...new Set(check(history).map(({ rule }) => rule))];
