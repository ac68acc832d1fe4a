import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionEvent, TaskResult } from '@shellfleet/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Sessions of `run`, of batches and of `fleet.session(…, { driven: true })` end with the process that drives them.

const SLOTS = 6;
/** Until both tests have left, on a busy machine. */
const CLOSED_WITHIN_MS = 60_000;

let stack: TestFleet;
let cli: FleetCli;
let folder: string;
beforeAll(async () => {
  stack = await startFleet({ slots: SLOTS });
  cli = new FleetCli(stack);
  folder = await mkdtemp(join(tmpdir(), 'sf-drivers-'));
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const openOnes = async (prefix: string) =>
  (await Array.fromAsync(stack.fleet.sessions())).filter(
    ({ id, state }) => id.startsWith(prefix) && state !== 'closed',
  );
const untilFree = () =>
  until(
    async () => (await stack.fleet.hosts())[0]?.free,
    (free) => free === SLOTS,
    CLOSED_WITHIN_MS,
  );

async function lastEvent(sessionId: string): Promise<SessionEvent | undefined> {
  const session = await stack.fleet.attach(sessionId);
  return (await Array.fromAsync(session?.events() ?? [])).at(-1);
}

/** Starts `run`, and ends its driver as soon as the command runs. */
async function beginRun(signal: NodeJS.Signals, sessions: Set<string>): Promise<string> {
  const driver = cli.start(['run', '--', `echo ${signal}; sleep 4; echo done`]);
  await until(
    () => driver.output().stdout.toString(),
    (shown) => shown.includes(signal),
  );
  for (const { id } of await openOnes('run-')) sessions.add(id);
  driver.child.kill(signal);
  return (await driver.end).stderr;
}

/** The commands that were accepted in a session. */
async function commandsOf(sessionId: string): Promise<string[]> {
  const events = await Array.fromAsync((await stack.fleet.attach(sessionId))?.events() ?? []);
  return events.flatMap(({ type, commandId }) => (type === 'command.accepted' && commandId ? [commandId] : []));
}

test.concurrent('when the drivers of batches and runs are gone, what they had accepted runs, also what waits in line; Results are kept, and every slot is free', async () => {
  const sessions = new Set<string>();
  const signals = ['SIGHUP', 'SIGTERM', 'SIGKILL'] as const;
  const said = await Promise.all(signals.map((signal) => beginRun(signal, sessions)));
  expect(said.map((text) => text.includes('it goes on as run-'))).toEqual([true, true, false]);
  const tasks = Array.from({ length: SLOTS }, (_, index) => ({
    id: `t${index}`,
    script: `sleep 1; echo $WORD ${index}`,
  }));
  await writeFile(join(folder, 'tasks.jsonl'), tasks.map((task) => JSON.stringify(task)).join('\n'));
  await writeFile(join(folder, 'spec.json'), JSON.stringify({ env: { WORD: 'task' } }));
  const out = join(folder, 'out.jsonl');
  const words = ['batch', 'run', join(folder, 'tasks.jsonl'), '--out', out, '--spec', join(folder, 'spec.json')];
  const batch = cli.start(words);
  const tasksInside = await until(
    () => openOnes('batch-'),
    (open) => open.length === SLOTS && open.every((one) => one.queuedCommands > 0 || one.runningCommandId),
  );
  expect(tasksInside.some(({ state }) => state === 'queued')).toBe(true);
  batch.child.kill('SIGKILL');
  for (const { id } of tasksInside) sessions.add(id);
  await untilFree();
  const ends = await Promise.all([...sessions].map(lastEvent));
  expect(ends.map((event) => ({ type: event?.type, data: event?.data }))).toEqual(
    ends.map(() => ({ type: 'session.closed', data: { reason: 'its driver is gone' } })),
  );
  const commands = (await Promise.all([...sessions].map(commandsOf))).flat();
  const results = await Promise.all(commands.map(async (id) => (await stack.fleet.command(id)).result()));
  expect(results.map(({ outcome, stdout }) => `${outcome} ${stdout}`).sort()).toEqual(
    [
      ...tasks.map((_, index) => `success task ${index}\n`),
      ...signals.map((signal) => `success ${signal}\ndone\n`),
    ].sort(),
  );
  // A later driver gets these Results, though the sessions are closed, and runs nothing.
  expect(await cli.text([...words, '--resume'])).toMatchObject({ exitCode: 0 });
  const lines = (await readFile(out, 'utf8')).trimEnd().split('\n');
  const resumed: TaskResult[] = lines.map((line) => JSON.parse(line));
  expect(resumed.flatMap((task) => task.results.map(({ commandId }) => commandId)).sort()).toEqual(
    commands.filter((id) => id.startsWith('batch-')).sort(),
  );
}, 90_000);

test.concurrent('a driven session stays, with its shell, while one of its drivers lives or a terminal is open in it', async () => {
  const [first, second] = [await stack.connect(), await stack.connect()];
  await (await first.session('shared', {}, { driven: true })).run('kept=yes');
  await second.session('shared', {}, { driven: true });
  await (await first.session('typed', {}, { driven: true })).run('true');
  const terminal = await (await stack.fleet.session('typed')).attach();
  await first.close();
  const leftAt = performance.now();
  const both = async () => [...(await openOnes('shared')), ...(await openOnes('typed'))].length;
  await until(both, (open) => open < 2 || performance.now() - leftAt > 9_500);
  expect(await both()).toBe(2);
  const session = await stack.fleet.session('shared');
  expect(await session.run('echo $kept')).toMatchObject({ stdout: 'yes\n', shell: { state: 'kept' } });
  await terminal.close();
  await second.close();
  await untilFree();
  expect(await lastEvent('shared')).toMatchObject({ type: 'session.closed', data: { reason: 'its driver is gone' } });
}, 90_000);
