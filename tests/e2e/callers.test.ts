import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Approval, Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

// Callers of one service, whose clients name them, on a host whose operator asks about everything here.

const RULES = `
rules:
  - { pattern: [touch], decision: prompt }
  - { pattern: [files.mkdir, /workspace/asked], decision: prompt }
  - { pattern: [tool, mark], decision: prompt }
`;
const ALICE = { id: 'key-1', name: 'alice' };
const BOB = { id: 'key-2', name: 'bob' };
const directory = mkdtempSync(join(tmpdir(), 'sf-callers-'));
let stack: TestFleet;
let alice: Fleet;
let bob: Fleet;

beforeAll(async () => {
  writeFileSync(join(directory, 'rules.yaml'), RULES);
  const config = join(directory, 'config.yaml');
  writeFileSync(config, `rules: [${join(directory, 'rules.yaml')}]\n`);
  stack = await startFleet({ env: { SHELLFLEET_CONFIG: config, SHELLFLEET_TOOLS: toolModules('everyday') } });
  [alice, bob] = await Promise.all([stack.connect({ caller: ALICE }), stack.connect({ caller: BOB })]);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const asked = (about: (question: Approval) => boolean) =>
  until(
    async () => (await stack.fleet.approvals.list()).filter(about),
    (found) => found.length > 0,
  ).then(([question]) => question as Approval);
const refused = { code: 'UNAUTHORIZED', message: expect.stringContaining('cannot answer what it submitted itself') };

describe('a caller', () => {
  test.each<[string, (fleet: Fleet) => Promise<unknown>]>([
    ['a command', async (fleet) => (await fleet.session('one')).run('touch a')],
    ['a file operation', async (fleet) => (await fleet.session('one')).files.mkdir('/workspace/asked/a')],
    [
      'an ordered file operation',
      async (fleet) => (await fleet.session('one')).files.mkdir('/workspace/asked/a', { ordered: true }),
    ],
    ['a restart', async (fleet) => (await fleet.session('restart', { startupCommands: ['touch b'] })).restart()],
    ['a tool call', (fleet) => fleet.tools.call('mark', { path: join(directory, 'mark'), id: 'a' })],
    [
      'a detached batch',
      async (fleet) => {
        const { name } = await fleet.batches.submit([{ id: 'task', script: 'touch d' }]);
        return Array.fromAsync(fleet.batches.attach(name));
      },
    ],
  ])('cannot answer a question about %s of its own, and another one can', async (_what, submit) => {
    const submitted = submit(alice);
    submitted.catch(() => {});
    const question = await asked(({ submittedBy }) => submittedBy !== undefined);
    expect(question.submittedBy).toEqual(ALICE);
    await expect(alice.approvals.approve(question.id)).rejects.toMatchObject(refused);
    await expect(alice.approvals.deny(question.id)).rejects.toMatchObject(refused);
    await bob.approvals.approve(question.id);
    await submitted;
    expect(await stack.fleet.approvals.list()).toEqual([]);
  });

  test('asks a question of its own, even if others ask about the same command', async () => {
    const sessions = await Promise.all([alice.session('one'), bob.session('two'), stack.fleet.session('three')]);
    const results = sessions.map((session) => session.run('touch same'));
    const questions = await until(
      () => stack.fleet.approvals.list(),
      ({ length }) => length === 3,
    );
    expect(questions.map(({ submittedBy }) => submittedBy?.name ?? '').sort()).toEqual(['', 'alice', 'bob']);
    const answers = questions.map(({ id, submittedBy }) =>
      (submittedBy?.id === ALICE.id ? bob : alice).approvals.approve(id, { scope: 'session' }),
    );
    await Promise.all(answers);
    expect((await Promise.all(results)).map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success']);
    // Her approval for the session of the others does not cover a command of hers.
    const own = (await alice.session('two')).run('touch same');
    const question = await asked(({ submittedBy }) => submittedBy?.id === ALICE.id);
    await bob.approvals.deny(question.id, 'not here');
    expect(await own).toMatchObject({ outcome: 'denial', stderr: 'Denied: bob denied it: not here\n' });
  });

  test('finds the Result of another one under the same idempotency key', async () => {
    const [hers, his] = await Promise.all([alice.session('one'), bob.session('one')]);
    const first = await hers.run('echo one', { idempotencyKey: 'k' });
    expect(await his.run('echo one', { idempotencyKey: 'k' })).toEqual({ ...first, deduplicated: true });
  });

  test('is in the audit, with the name of who answered', async () => {
    const places = readdirSync(join(stack.stateDirectory, 'hosts')).map((host) =>
      join(stack.stateDirectory, 'hosts', host, 'audit', 't-default'),
    );
    const events = places
      .flatMap((place) => readdirSync(place).map((file) => readFileSync(join(place, file), 'utf8')))
      .flatMap((text) => text.split('\n').filter((line) => line.includes('"event"')))
      .map((line) => JSON.parse(line).record.event);
    const kinds = events
      .filter(({ submittedBy }) => submittedBy?.id === ALICE.id)
      .map(({ type, kind }) => kind ?? type);
    expect([...new Set(kinds)].sort()).toEqual(['command', 'file', 'restart', 'tool-asks', 'tool-start']);
    expect(events.filter(({ type }) => type === 'answer').map(({ answeredBy }) => answeredBy)).toContain('bob');
  });

  test('may answer its own questions when the configuration of the fleet says so', async () => {
    const { configuration } = (await stack.fleet.configuration()) ?? { configuration: {} };
    await alice.applyConfiguration({ ...configuration, approvals: { self: true } });
    expect((await stack.fleet.configuration())?.appliedBy).toBe('alice');
    const result = (await alice.session('one')).run('touch a');
    await alice.approvals.approve((await asked(({ submittedBy }) => submittedBy?.id === ALICE.id)).id);
    expect(await result).toMatchObject({ outcome: 'success' });
  });
});
