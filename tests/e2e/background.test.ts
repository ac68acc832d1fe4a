import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const start = 'sleep 1000 & pid=$!; until [ "$(cat /proc/$pid/comm)" = sleep ]; do :; done; echo $pid';

describe('background processes', () => {
  test('are listed by the pids of their sandbox until they end', async () => {
    const session = await stack.fleet.session('listed');
    const pid = Number((await session.run(start)).stdout);
    const info = await session.info();
    expect(info).toEqual({ ...info, background: [{ pid, command: 'sleep 1000' }] });
    expect('backgroundUnknown' in info).toBe(false);
    await session.run(`kill ${pid}; wait`);
    expect((await session.info()).background).toEqual([]);
  });

  test('outlive other commands, a timeout, a cancellation and exit, and end with their session', async () => {
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

  test('are marked as unknown in a list of sessions, which asks no host', async () => {
    const session = await stack.fleet.session('not-asked');
    await session.run('sleep 1000 & :');
    const listed = (await Array.fromAsync(stack.fleet.sessions())).find(({ id }) => id === 'not-asked');
    expect(listed).toMatchObject({ background: [], backgroundUnknown: true });
  });

  test('are marked as unknown within 2.5 s when their host does not answer', async () => {
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

  test('are all listed when there are many, with shortened command lines', async () => {
    const session = await stack.fleet.session('many');
    const script = `for i in $(seq 100); do sh -c 'sleep 1000; :' ${'x'.repeat(400)} & done; sleep 0.5`;
    await session.run(script);
    const { background } = await session.info();
    expect(background.filter(({ command }) => command === 'sleep 1000')).toHaveLength(100);
    const shells = background.filter(({ command }) => command.startsWith('sh -c sleep 1000; : xxx'));
    expect(shells).toHaveLength(100);
    expect(shells[0]?.command).toMatch(/^.{200}…$/);
  });

  test('are listed if earlier commands started them, but not if the running command did', async () => {
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
});

describe('the info of a session', () => {
  const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
  const image = 'shellfleet-test-loop:1';
  beforeAll(async () => {
    const container = await docker.createContainer({ Image: inject('sessionImage'), Cmd: ['true'] });
    await container.commit({ repo: 'shellfleet-test-loop', tag: '1', changes: 'ENV SF_LOOP=1' });
    await container.remove();
  });
  afterAll(() => docker.getImage(image).remove({ force: true }));

  test.each([
    ['builtin', 'bash', inject('sessionImage')],
    ['loop', 'dash', inject('testImages').dashOnly],
    ['loop', 'bash in an image with SF_LOOP', image],
  ])('says that commands get by the %s into %s', async (way, name, of) => {
    const session = await stack.fleet.session(name.replaceAll(' ', '-'), { image: of });
    expect('way' in (await session.info())).toBe(false);
    expect(await session.run('echo "[$SF_LOOP]"')).toMatchObject({ stdout: '[]\n' });
    expect(await session.info()).toMatchObject({ way });
    const [listed] = (await Array.fromAsync(stack.fleet.sessions())).filter(({ id }) => id === session.id);
    expect('way' in (listed ?? {})).toBe(false);
  });
});
