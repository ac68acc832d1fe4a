import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ClientEvent, Fault, History, Mark, Operation, Printed, SeenResult } from '../history/history.ts';
import { check } from './check.ts';

// The checker itself: a good history passes, and each planted fault is found.

const print = (text: string): Printed => ({
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

const resultOf = (index: number, changed: Partial<SeenResult> = {}): SeenResult => ({
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

const LOST: Partial<SeenResult> = {
  outcome: 'lost',
  exitCode: null,
  reason: 'host-lost',
  head: '',
  stdout: print(''),
  totals: { stdoutBytes: 0, stderrBytes: 0 },
  shell: { state: 'lost', epoch: 1 },
};

const SECONDS = 1_000;
/** Four commands, one after the other, a second each, from second 100 on. */
function good(): History {
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
    forgets: false,
  };
}

type Session = History['sessions'][number];
const sessionOf = (history: History): Session => history.sessions[0] as Session;

/** The history after a change of it. */
function planted(change: (history: History, session: Session) => void): History {
  const history = good();
  change(history, sessionOf(history));
  return history;
}

function setResult(history: History, index: number, changed: Partial<SeenResult>): void {
  for (const event of history.clientEvents) {
    if (event.type === 'result' && event.op === `s.${index}`) Object.assign(event.result, changed);
  }
  const terminal = sessionOf(history).terminals[index];
  if (terminal !== undefined && changed.outcome !== undefined) terminal.outcome = changed.outcome;
}

const fault = (kind: string, target: string, second: number, rest: Partial<Fault> = {}): Fault => ({
  kind,
  target,
  from: second * SECONDS,
  to: (second + 1) * SECONDS,
  ...rest,
});

const rulesOf = (history: History): string[] => [...new Set(check(history).map(({ rule }) => rule))];

test('a good history has no violation', () => {
  expect(check(good())).toEqual([]);
});

describe('A planted fault is found', () => {
  test.each<[string, string[], (history: History, session: Session) => void]>([
    ['a command that was accepted and never ran', ['lost'], (_, session) => void session.marks.splice(2, 2)],
    [
      'an accepted command without a Result',
      ['lost'],
      (history) => {
        history.clientEvents = history.clientEvents.filter(({ op, type }) => !(op === 's.1' && type === 'result'));
      },
    ],
    [
      'a command that ran twice',
      ['doubled'],
      (_, session) => void session.marks.splice(3, 0, { type: 'begin', op: 's.1' }),
    ],
    [
      'a command that ran twice, the second time much later',
      ['doubled'],
      (_, session) => void session.marks.push({ type: 'begin', op: 's.1' }, { type: 'end', op: 's.1' }),
    ],
    [
      'two commands that changed places',
      ['reordered'],
      (_, session) => void session.marks.splice(2, 4, ...session.marks.slice(4, 6), ...session.marks.slice(2, 4)),
    ],
    [
      'two commands that ran at the same time',
      ['overlapping'],
      (_, { marks }) => void marks.splice(3, 2, marks[4] as Mark, marks[3] as Mark),
    ],
    [
      'a missing byte in a Result',
      ['output'],
      (history) => setResult(history, 1, { totals: { stdoutBytes: 's.1 2\nbody 1'.length, stderrBytes: 0 } }),
    ],
    ['another byte in a Result', ['output'], (history) => setResult(history, 1, { stdout: print('bodY 1\n') })],
    [
      'a missing byte in the output of a reader',
      ['output'],
      (history) => {
        const event = history.clientEvents.find(({ op, type }) => op === 's.2' && type === 'output');
        if (event?.type === 'output') event.stdout = { ...print('body 2'), omittedBytes: 0 };
      },
    ],
    [
      'two terminal events',
      ['two terminal events'],
      (_, { terminals }) => void terminals.push({ commandId: 's.ULID1', outcome: 'success' }),
    ],
    ['no terminal event', ['no terminal event'], (_, { terminals }) => void terminals.splice(1, 1)],
    [
      'a command that ran twice although its host was up when Redis lost its tail',
      ['doubled'],
      (history, session) => {
        session.marks.push({ type: 'begin', op: 's.3' }, { type: 'end', op: 's.3' });
        history.faults.push(fault('redis-restore', 'redis', 103, { restoredTo: 103 * SECONDS }));
      },
    ],
    [
      'a refused start without a full disk',
      ['unjustified loss'],
      (history, session) => {
        setResult(history, 3, { ...LOST, outcome: 'error', errorCode: 'SESSION_START_FAILED' });
        session.marks.splice(6, 2);
      },
    ],
    [
      'no terminal event behind one that is there, in a stream that was cut',
      ['no terminal event'],
      (history, { terminals }) => {
        history.faults.push(fault('redis-full', 'redis', 103));
        terminals.splice(1, 1);
      },
    ],
    [
      'a terminal event that differs from the Result',
      ['two results'],
      (_, { terminals }) => void terminals.splice(1, 1, { commandId: 's.ULID1', outcome: 'lost' }),
    ],
    [
      'two Results that differ',
      ['two results'],
      (history) =>
        void history.clientEvents.push({
          at: 110 * SECONDS,
          op: 's.1',
          type: 'result',
          result: resultOf(1, { exitCode: 1 }),
        }),
    ],
    [
      'a submit that was accepted twice',
      ['accepted twice'],
      (history) =>
        void history.clientEvents.push({ at: 110 * SECONDS, op: 's.1', type: 'accepted', commandId: 's.OTHER' }),
    ],
    ['an outcome that the command did not have', ['wrong result'], (history) => setResult(history, 1, { exitCode: 9 })],
    ["a 'lost' without any fault", ['unjustified loss'], (history) => setResult(history, 3, { ...LOST })],
    [
      "a 'lost' on a host that lives, while another one is dead",
      ['unjustified loss'],
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(fault('host-dead', 'h2', 102, { to: (102 + 10) * SECONDS }));
      },
    ],
    [
      "a 'lost' after a worker was killed whose host lives",
      ['unjustified loss'],
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(fault('worker-kill', 'h1', 102));
      },
    ],
    [
      "a 'lost' after its host was away for less than the lease",
      ['unjustified loss'],
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(fault('host-dead', 'h1', 102, { to: 106 * SECONDS }));
      },
    ],
    [
      "a 'lost' because Redis was away for longer than the lease",
      ['unjustified loss'],
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(fault('redis-stop', 'redis', 102, { to: 202 * SECONDS }));
      },
    ],
    [
      "a 'lost' after a fault that had ended long before",
      ['unjustified loss'],
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(fault('host-dead', 'h1', 20, { to: (20 + 10) * SECONDS }));
      },
    ],
    ['a fresh shell that poses as the old one', ['shell'], (history) => setResult(history, 2, { head: 's.2 1' })],
    ['a shell that forgot a command', ['shell'], (history) => setResult(history, 2, { head: 's.2 2' })],
    [
      'a shell that was lost without a reason',
      ['unjustified loss'],
      (history) => {
        setResult(history, 2, { head: 's.2 1', shell: { state: 'lost', epoch: 2 } });
        setResult(history, 3, { head: 's.3 2', shell: { state: 'kept', epoch: 2 } });
      },
    ],
    [
      'a submit that was refused while nothing was out of reach',
      ['refused'],
      (history) =>
        void history.clientEvents.push({
          at: 101 * SECONDS,
          op: 's.1',
          type: 'refused',
          code: 'QUEUE_UNAVAILABLE',
          retryable: true,
        }),
    ],
    [
      'a submit that was refused for ever because of an outage',
      ['refused'],
      (history) => {
        history.faults.push(fault('redis-kill', 'redis', 101));
        const refused = { type: 'refused', code: 'SESSION_NOT_FOUND', retryable: false } as const;
        history.clientEvents.push({ at: 101 * SECONDS, op: 's.1', ...refused });
      },
    ],
    [
      'a command that nobody submitted',
      ['foreign'],
      (_, session) => void session.marks.push({ type: 'begin', op: 's.77' }, { type: 'end', op: 's.77' }),
    ],
  ])('%s', (_, rules, change) => {
    expect(rulesOf(planted(change))).toEqual(rules);
  });
});

describe('A fault permits what its row of the promises permits:', () => {
  test.each<[string, (history: History, session: Session) => void]>([
    [
      "a 'lost' on a dead host, and a fresh shell after it",
      (history, { marks }) => {
        setResult(history, 2, { ...LOST });
        setResult(history, 3, { head: 's.3 1', hostId: 'h2', shell: { state: 'lost', epoch: 2 } });
        marks.splice(5, 1);
        history.faults.push(fault('host-dead', 'h1', 102, { to: (102 + 10) * SECONDS }));
      },
    ],
    [
      'a container that was killed while nothing ran in it',
      (history) => {
        setResult(history, 2, { head: 's.2 1', shell: { state: 'lost', epoch: 2 } });
        setResult(history, 3, { head: 's.3 2', shell: { state: 'kept', epoch: 2 } });
        history.faults.push(fault('container-kill', 's', 101.7, { to: 101_700 }));
      },
    ],
    [
      "a 'lost' when several faults together kept the host away for longer than the lease",
      (history) => {
        setResult(history, 3, { ...LOST });
        history.faults.push(
          fault('worker-kill', 'h1', 101, { to: 103 * SECONDS }),
          fault('partition', 'h1', 104, { to: 108 * SECONDS }),
        );
      },
    ],
    [
      'a refused submit while Redis is away',
      (history) => {
        history.faults.push(fault('redis-stop', 'redis', 101));
        const refused = { type: 'refused', code: 'QUEUE_UNAVAILABLE', retryable: true } as const;
        history.clientEvents.push({ at: 101 * SECONDS, op: 's.1', ...refused });
      },
    ],
    [
      'commands that went with the tail of Redis',
      (history, session) => {
        history.clientEvents = history.clientEvents.filter(({ op, type }) => !(op === 's.2' && type === 'result'));
        history.clientEvents.push({ at: 104 * SECONDS, op: 's.2', type: 'expired' });
        session.terminals.splice(2, 1);
        history.faults.push(fault('redis-restore', 'redis', 103, { restoredTo: 101 * SECONDS }));
      },
    ],
    [
      'an epoch that went with the tail of Redis, and was given again',
      (history) => {
        setResult(history, 2, { shell: { state: 'kept', epoch: 2 } });
        history.faults.push(fault('redis-restore', 'redis', 102, { restoredTo: 101.5 * SECONDS, to: 102.5 * SECONDS }));
      },
    ],
    [
      'the oldest terminal events, in a stream that a full Redis had cut',
      (history, session) => {
        session.terminals.splice(0, 2);
        history.faults.push(fault('redis-full', 'redis', 103));
      },
    ],
    [
      'a command whose begin went with the tail of Redis, while the worker that had begun it was down',
      (history, session) => {
        session.marks.push({ type: 'begin', op: 's.3' }, { type: 'end', op: 's.3' });
        const restored = { restoredTo: 103 * SECONDS, to: 105 * SECONDS };
        history.faults.push(fault('redis-restore', 'redis', 103, restored), fault('worker-kill', 'h1', 104));
      },
    ],
    [
      'commands of a session for which a full disk of its host left no room',
      (history, session) => {
        const refused = { ...LOST, outcome: 'error', errorCode: 'SESSION_START_FAILED' } as const;
        setResult(history, 3, refused);
        session.marks.splice(6, 2);
        history.faults.push(fault('host-disk-full', 'host', 103));
      },
    ],
    [
      'an expired Result of a client that slept',
      (history) => {
        history.clientEvents = history.clientEvents.filter(({ op, type }) => !(op === 's.2' && type === 'result'));
        history.clientEvents.push({ at: 104 * SECONDS, op: 's.2', type: 'expired' });
        history.faults.push(fault('client-asleep', 'c1', 102));
      },
    ],
    [
      'a second run of a submit whose client slept before it had the answer, until its key was forgotten',
      (history, session) => {
        for (const event of history.clientEvents) {
          if (event.op === 's.3' && event.type !== 'submit') event.at += 20 * SECONDS;
        }
        session.marks.push({ type: 'begin', op: 's.3' }, { type: 'end', op: 's.3' });
        history.faults.push(fault('client-asleep', 'c1', 103, { to: 115 * SECONDS }));
      },
    ],
    [
      'a command that ended its own shell',
      (history, session) => {
        const own = session.operations[1] as Operation;
        own.expect = { ...own.expect, outcome: 'failure', exitCode: null, endsShell: true };
        setResult(history, 1, { outcome: 'failure', exitCode: null, shell: { state: 'lost', epoch: 2 } });
        setResult(history, 2, { head: 's.2 1', shell: { state: 'kept', epoch: 2 } });
        setResult(history, 3, { head: 's.3 2', shell: { state: 'kept', epoch: 2 } });
        session.marks.splice(3, 1);
      },
    ],
  ])('%s', (_, change) => {
    expect(check(planted(change))).toEqual([]);
  });

  test('never a second run, whatever was lost', () => {
    const history = planted((changed, session) => {
      changed.faults.push(fault('redis-restore', 'redis', 103, { restoredTo: 100 * SECONDS }));
      session.marks.push({ type: 'begin', op: 's.1' }, { type: 'end', op: 's.1' });
    });
    expect(rulesOf(history)).toEqual(['doubled']);
  });
});
