import { describe, expect, test } from 'vitest';
import type { History, Operation } from '../history/history.ts';
import { check } from './check.ts';
import { fault, LOST, planted, rulesOf, SECONDS, type Session, setResult } from './good-history.ts';

// A deviation that a fault of the round permits is no violation.

describe('a fault permits, as its row of the promises says,', () => {
  test.each<[string, (history: History, session: Session) => void]>([
    [
      "the outcome 'lost' on a dead host, and a fresh shell afterwards",
      (history, { marks }) => {
        setResult(history, 2, { ...LOST });
        setResult(history, 3, { head: 's.3 1', hostId: 'h2', shell: { state: 'lost', epoch: 2 } });
        marks.splice(5, 1);
        history.faults.push(fault('host-dead', 'h1', 102, { to: (102 + 10) * SECONDS }));
      },
    ],
    [
      "the outcome 'lost' of a command submitted in the second in which its host stopped",
      (history, { marks }) => {
        setResult(history, 3, { ...LOST });
        marks.splice(6, 2);
        history.begun.pop();
        history.faults.push(fault('host-dead', 'h1', 102.5, { to: (102 + 10) * SECONDS }));
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
      "the outcome 'lost' when several faults kept the host away for longer than the lease",
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
      'the loss of commands among the newest writes of Redis',
      (history, session) => {
        history.clientEvents = history.clientEvents.filter(({ op, type }) => !(op === 's.2' && type === 'result'));
        history.clientEvents.push({ at: 104 * SECONDS, op: 's.2', type: 'expired' });
        session.terminals.splice(2, 1);
        history.faults.push(fault('redis-restore', 'redis', 103, { restoredTo: 101 * SECONDS }));
      },
    ],
    [
      'an epoch that is used twice, because Redis had lost the newest writes',
      (history) => {
        setResult(history, 2, { shell: { state: 'kept', epoch: 2 } });
        history.faults.push(fault('redis-restore', 'redis', 102, { restoredTo: 101.5 * SECONDS, to: 102.5 * SECONDS }));
      },
    ],
    [
      'missing oldest terminal events in a stream that a full Redis trimmed',
      (history, session) => {
        session.terminals.splice(0, 2);
        history.faults.push(fault('redis-full', 'redis', 103));
      },
    ],
    [
      'a second run when Redis lost the start while the worker was down',
      (history, session) => {
        session.marks.push({ type: 'begin', op: 's.3' }, { type: 'end', op: 's.3' });
        const restored = { restoredTo: 103 * SECONDS, to: 105 * SECONDS };
        history.faults.push(fault('redis-restore', 'redis', 103, restored), fault('worker-kill', 'h1', 104));
      },
    ],
    [
      'a failed start of a session whose container was killed during its set-up',
      (history, session) => {
        const refused = { ...LOST, outcome: 'error', errorCode: 'SESSION_START_FAILED' } as const;
        setResult(history, 3, refused);
        session.marks.splice(6, 2);
        history.faults.push(fault('container-kill', 's', 103));
      },
    ],
    [
      'a failed start of a session on a host with a full disk',
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
      'a second run when the client slept until its idempotency key had expired',
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

  test('no second run of a command whose host was up, whatever Redis lost', () => {
    const history = planted((changed, session) => {
      changed.faults.push(fault('redis-restore', 'redis', 103, { restoredTo: 100 * SECONDS }));
      session.marks.push({ type: 'begin', op: 's.1' }, { type: 'end', op: 's.1' });
    });
    expect(rulesOf(history)).toEqual(['doubled']);
  });
});
