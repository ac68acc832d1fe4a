import type { Command, Fleet, Result } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Invariants 2 and 4: one at a time, in the order of acceptance, each with exactly one end.

let stack: TestFleet;
let other: Fleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 10 });
  other = await stack.connect();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('the order of a session', () => {
  // S1-08
  test('runs 50 commands of two submitters one at a time, in each one’s order', async () => {
    const [ours, theirs] = await Promise.all([stack.fleet.session('fifty'), other.session('fifty')]);
    const submitted: Promise<Command>[] = [];
    for (let index = 0; index < 25; index++) {
      for (const [name, session] of [
        ['a', ours],
        ['b', theirs],
      ] as const) {
        // A second command at the same time would fail, because the directory of the first exists.
        submitted.push(
          session.submit(`mkdir running && echo ${name}${index} >> log && rmdir running && echo ${name}${index}`),
        );
      }
    }
    const commands = await Promise.all(submitted);
    const results = await Promise.all(commands.map((command) => command.result()));
    expect(results.map(({ outcome, stdout }) => `${outcome} ${stdout}`)).toEqual(
      commands.map((_command, index) => `success ${index % 2 === 0 ? 'a' : 'b'}${Math.floor(index / 2)}\n`),
    );
    const ran = (await ours.files.readText('/workspace/log')).trim().split('\n');
    const ofOne = (name: string) => ran.filter((line) => line.startsWith(name));
    const inOrder = (name: string) => Array.from({ length: 25 }, (_, index) => `${name}${index}`);
    expect({ ran: ran.length, a: ofOne('a'), b: ofOne('b') }).toEqual({ ran: 50, a: inOrder('a'), b: inOrder('b') });

    await using inspector = inspectFleet(stack);
    expect(
      await inspector.broken(
        'fifty',
        commands.map(({ id }) => id),
      ),
    ).toEqual([]);
  });

  test('does not bind other sessions: their commands run at the same time', async () => {
    const sessions = await Promise.all(['one', 'two', 'three'].map((name) => stack.fleet.session(`beside-${name}`)));
    const commands = await Promise.all(
      sessions.map((session) => session.submit('until [ -e go ]; do sleep 0.02; done; echo went')),
    );
    // No command ends before all of them run.
    await until(
      () => Promise.all(sessions.map((session) => session.info())),
      (infos) => infos.every(({ state }) => state === 'busy'),
    );
    const infos = await Promise.all(sessions.map((session) => session.info()));
    expect(infos).toEqual(
      sessions.map(({ id }, index) => ({
        id,
        state: 'busy',
        hostId: 'h1',
        epoch: 1,
        queuedCommands: 0,
        runningCommandId: commands[index]?.id,
        background: [],
        start: 'cold',
        way: 'builtin',
        coldReason: 'no-pool',
        image: inject('sessionImage'),
        imageDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        labels: {},
        createdAt: expect.any(String),
        lastActiveAt: expect.any(String),
      })),
    );
    await Promise.all(commands.map((command) => command.cancel()));
    const results = await Promise.all(commands.map((command) => command.result()));
    expect(results.map(({ outcome }) => outcome)).toEqual(['cancellation', 'cancellation', 'cancellation']);
  });

  test('keeps ordered file operations and restarts in their place among the commands', async () => {
    const session = await stack.fleet.session('mixed');
    const steps: Promise<unknown>[] = [
      session.run('echo one > f; kept=yes'),
      session.files.readText('/workspace/f', { ordered: true }),
      session.files.write('/workspace/f', 'two\n', { ordered: true }),
      session.run('cat f; echo "$kept"'),
      session.restart(),
      session.run('cat f; echo "$kept"'),
      session.files.remove('/workspace/f', { ordered: true }),
      session.run('cat f'),
    ];
    const answers = await Promise.all(steps);
    const texts = answers.map((answer) => (typeof answer === 'object' ? (answer as Result).stdout : answer));
    expect(texts).toEqual(['', 'one\n', undefined, 'two\nyes\n', undefined, 'two\n\n', undefined, '']);
    expect(answers[5]).toEqual(expectedResult('mixed', { stdout: 'two\n\n', shell: { state: 'kept', epoch: 2 } }));
  });
});
