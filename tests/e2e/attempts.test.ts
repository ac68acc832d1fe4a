import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Second attempts of commands in containers whose workspace is read-only; the wider sandbox may write to it.

let directory: string;
let stack: TestFleet;
let worker: TestWorker;

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'sf-attempts-')));
  await chmod(directory, 0o755);
  const config = join(directory, 'config.yaml');
  await writeFile(config, 'escalation: { mode: workspace-write }\n');
  stack = await startFleet({ env: { SHELLFLEET_CONFIG: config, SHELLFLEET_WORKSPACES: directory } });
  worker = stack.workers[0] as TestWorker;
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function open(id: string): Promise<{ session: Session; made: string }> {
  const workspace = join(directory, id);
  await mkdir(workspace);
  await chmod(workspace, 0o777);
  const session = await stack.fleet.session(id, { workspace, sandbox: { mode: 'read-only' }, approval: 'on-failure' });
  return { session, made: join(workspace, 'made') };
}

const asked = async ({ id }: Session) =>
  (
    await until(
      () => stack.fleet.approvals.list({ sessionId: id }),
      ({ length }) => length > 0,
    )
  )[0]!;
const SCRIPT = 'echo attempt >> /tmp/attempts; echo $kept; touch made';
const DENIED = /touch: .*made.*: Read-only file system\n$/;

describe('the second attempt of a command', () => {
  // S2-06, S3-25
  test('asks a question that survives the worker, and runs once after its approval', async () => {
    const { session, made } = await open('asked');
    await session.run('export kept=yes');
    const command = await session.submit(SCRIPT);
    const question = await asked(session);
    expect(question).toMatchObject({
      ...{ outside: true, script: SCRIPT, place: 'policy docker, mode workspace-write, network restricted' },
      firstAttempt: { exitCode: 1, output: expect.stringMatching(DENIED) },
    });
    await worker.kill();
    await worker.start();
    expect(await asked(session)).toEqual(question);
    expect(existsSync(made)).toBe(false);
    await stack.fleet.approvals.approve(question.id);
    expect(await command.result()).toMatchObject({
      // Exports of the session's shell do not reach the second attempt.
      ...{ outcome: 'success', stdout: '\n', stderr: '', outside: true, attempts: 2 },
      ...{ firstAttempt: question.firstAttempt, shell: { state: 'kept', epoch: 1 } },
    });
    expect(existsSync(made)).toBe(true);
    // The first attempt ran inside the sandbox, once.
    expect((await session.run('cat /tmp/attempts')).stdout).toBe('attempt\n');
    await session.close();
  });

  // S2-17
  test('keeps the first attempt’s exit code, output and duration when it is denied', async () => {
    const { session, made } = await open('denied');
    const command = await session.submit(SCRIPT);
    await stack.fleet.approvals.deny((await asked(session)).id, 'not there', { answeredBy: 'ada' });
    const result = await command.result();
    expect(result).toMatchObject({
      ...{ outcome: 'failure', exitCode: 1, reason: 'exited', stdout: '\n', refused: 'ada denied it: not there' },
      denied: { what: 'files', line: expect.stringContaining('Read-only file system'), mayAsk: true },
    });
    expect(result.stderr).toMatch(DENIED);
    expect(result.timings.runMs).toBeGreaterThan(0);
    expect(existsSync(made)).toBe(false);
    await session.close();
  });

  test('is lost when its worker is killed, and the command does not run again', async () => {
    const { session, made } = await open('killed');
    const command = await session.submit('touch made && echo once >> made && sleep 60', { retry: 'idempotent' });
    await stack.fleet.approvals.approve((await asked(session)).id);
    await until(
      async () => existsSync(made),
      (exists) => exists,
    );
    await worker.kill();
    await worker.start();
    expect(await command.result()).toMatchObject({ outcome: 'lost', attempts: 2 });
    expect(await session.run('cat made')).toMatchObject({ stdout: 'once\n', shell: { state: 'kept', epoch: 1 } });
    await session.close();
  });
});
