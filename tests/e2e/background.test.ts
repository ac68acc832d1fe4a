import { afterAll, beforeAll, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const start = 'sleep 1000 & pid=$!; until [ "$(cat /proc/$pid/comm)" = sleep ]; do :; done; echo $pid';

test('lists what runs in the background of a session, by the pids of its sandbox, and nothing once it has ended', async () => {
  const session = await stack.fleet.session('listed');
  const pid = Number((await session.run(start)).stdout);
  const info = await session.info();
  expect(info).toEqual({ ...info, background: [{ pid, command: 'sleep 1000' }] });
  expect('backgroundUnknown' in info).toBe(false);
  await session.run(`kill ${pid}; wait`);
  expect((await session.info()).background).toEqual([]);
});

test('a background process outlives other commands, a timeout, a cancellation and exit, and ends with the session', async () => {
  const session = await stack.fleet.session('outlives');
  const pid = Number((await session.run(start)).stdout);
  const running = [{ pid, command: 'sleep 1000' }];
  const isAlive = async () => (await session.info()).background;
  await session.run('sleep 4321', { timeoutMs: 300 });
  expect(await isAlive()).toEqual(running);
  const command = await session.submit('echo on; sleep 4321');
  for await (const _chunk of command.output()) break;
  await command.cancel();
  await command.result();
  expect(await isAlive()).toEqual(running);
  await session.run('exit 3');
  expect(await isAlive()).toEqual(running);
  await session.close();
  await using inspect = inspectFleet(stack);
  expect(await inspect.containers('outlives')).toEqual([]);
});

test('a list of sessions is made without asking hosts, and marks their background processes as unknown', async () => {
  const session = await stack.fleet.session('not-asked');
  await session.run('sleep 1000 & :');
  const listed = (await Array.fromAsync(stack.fleet.sessions())).find(({ id }) => id === 'not-asked');
  expect(listed).toMatchObject({ background: [], backgroundUnknown: true });
});

test('the background processes of a session whose host does not answer are marked as unknown within 2.5 s', async () => {
  await using alone = await startFleet();
  const session = await alone.fleet.session('frozen');
  await session.run('sleep 1000 & :');
  alone.workers[0]?.signal('SIGSTOP');
  const from = performance.now();
  const info = await session.info();
  expect(performance.now() - from).toBeLessThan(2_500);
  expect(info).toMatchObject({ background: [], backgroundUnknown: true });
  alone.workers[0]?.signal('SIGCONT');
  await until(
    () => session.info(),
    ({ background, backgroundUnknown }) => background.length === 1 && backgroundUnknown === undefined,
  );
});

test('a long command line is cut, and many processes are all listed', async () => {
  const session = await stack.fleet.session('many');
  const script = `for i in $(seq 100); do sh -c 'sleep 1000; :' ${'x'.repeat(400)} & done; sleep 0.5`;
  await session.run(script);
  const { background } = await session.info();
  expect(background.filter(({ command }) => command === 'sleep 1000')).toHaveLength(100);
  const shells = background.filter(({ command }) => command.startsWith('sh -c sleep 1000; : xxx'));
  expect(shells).toHaveLength(100);
  expect(shells[0]?.command).toMatch(/^.{200}…$/);
});

test('processes of the running command are not listed as background, those of earlier commands are', async () => {
  const session = await stack.fleet.session('busy');
  await session.run('sleep 1001 &');
  const running = await session.submit('sleep 1002 & sleep 1003');
  await until(
    () => session.info(),
    ({ state }) => state === 'busy',
  );
  const { background } = await session.info();
  expect(background.map(({ command }) => command)).toEqual(['sleep 1001']);
  await running.cancel();
});
