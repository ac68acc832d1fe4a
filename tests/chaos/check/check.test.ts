import { describe, expect, test } from 'vitest';
import type { History, Mark } from '../history/history.ts';
import { check } from './check.ts';
import {
  fault,
  good,
  LOST,
  planted,
  print,
  resultOf,
  rulesOf,
  SECONDS,
  type Session,
  setResult,
} from './good-history.ts';

// Tests of the check itself: a good history passes, and each planted fault is found.

describe('the check of a history', () => {
  test('finds no violation in a good history', () => {
    expect(check(good())).toEqual([]);
  });

  describe('finds a planted fault:', () => {
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
        'two commands that ran in the wrong order',
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
      ['a changed byte in a Result', ['output'], (history) => setResult(history, 1, { stdout: print('bodY 1\n') })],
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
        'a second run of a command whose host was up when Redis lost the newest writes',
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
        'a missing terminal event after an existing one, in a stream that was trimmed',
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
      [
        'a Result with another exit code than the command had',
        ['wrong result'],
        (history) => setResult(history, 1, { exitCode: 9 }),
      ],
      ["the outcome 'lost' without any fault", ['unjustified loss'], (history) => setResult(history, 3, { ...LOST })],
      [
        "the outcome 'lost' of a command that was submitted long after its host had stopped",
        ['lost unbegun'],
        (history, { marks }) => {
          setResult(history, 3, { ...LOST });
          marks.splice(6, 2);
          history.begun.pop();
          history.faults.push(fault('host-dead', 'h1', 98, { to: 110 * SECONDS }));
        },
      ],
      [
        "the outcome 'lost' on a living host, while another host is dead",
        ['unjustified loss'],
        (history) => {
          setResult(history, 3, { ...LOST });
          history.faults.push(fault('host-dead', 'h2', 102, { to: (102 + 10) * SECONDS }));
        },
      ],
      [
        "the outcome 'lost' after only the worker of the host was killed",
        ['unjustified loss'],
        (history) => {
          setResult(history, 3, { ...LOST });
          history.faults.push(fault('worker-kill', 'h1', 102));
        },
      ],
      [
        "the outcome 'lost' after the host was away for less than the lease",
        ['unjustified loss'],
        (history) => {
          setResult(history, 3, { ...LOST });
          history.faults.push(fault('host-dead', 'h1', 102, { to: 106 * SECONDS }));
        },
      ],
      [
        "the outcome 'lost' because Redis was away for longer than the lease",
        ['unjustified loss'],
        (history) => {
          setResult(history, 3, { ...LOST });
          history.faults.push(fault('redis-stop', 'redis', 102, { to: 202 * SECONDS }));
        },
      ],
      [
        "the outcome 'lost' long after the only fault had ended",
        ['unjustified loss'],
        (history) => {
          setResult(history, 3, { ...LOST });
          history.faults.push(fault('host-dead', 'h1', 20, { to: (20 + 10) * SECONDS }));
        },
      ],
      ['a fresh shell that poses as the old one', ['shell'], (history) => setResult(history, 2, { head: 's.2 1' })],
      ['a shell that lost the state of one command', ['shell'], (history) => setResult(history, 2, { head: 's.2 2' })],
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
});
