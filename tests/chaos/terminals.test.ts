// Terminals when their worker, their user or their sandbox dies, or Redis is away for a while.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { SessionTerminal } from '../support/session-terminal.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const attaches = fileURLToPath(new URL('../fixtures/attaches-and-waits.ts', import.meta.url));
/** Duration of the fault itself, longer than the deadline of a call to Redis. */
const AWAY_MS = 3_000;
/** Each look is a command, and a terminal without a user lasts for half a minute. */
const LOOK_EVERY_MS = 250;

// These suites mostly wait, so they run at the same time. The tests of one fleet run one after the other.
describe.concurrent.each(['socket', 'attach'] as const)('a terminal over %s', (transport) => {
  let stack: TestFleet;
  let worker: TestWorker;
  let inspect: FleetInspector;
  beforeAll(async () => {
    ({ stack, worker, inspect } = await startInspectedFleet({ transport }));
  });
  afterAll(() => endInspectedFleet(stack, inspect));

  test('passes output and input once when its worker is killed and replaced', { concurrent: false }, async () => {
    const session = await stack.fleet.session('adopted');
    const terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type('stty -echo; PS1=; echo re""ady\n');
    await person.sees('ready\r\n');
    await person.type(
      'for i in $(seq 1 60); do echo "line $i"; sleep 0.05; done; while read -r x; do echo "<$x>"; done\n',
    );
    await person.sees('line 10\r\n');
    await worker.kill();
    for (const word of ['one', 'two', 'three']) await person.type(`${word}\n`);
    await worker.start();
    await person.type('four\n');
    const rest = Array.from({ length: 50 }, (_, index) => `line ${index + 11}\r\n`).join('');
    const expected = `${rest}<one>\r\n<two>\r\n<three>\r\n<four>\r\n`;
    await until(
      () => person.shown,
      (shown) => shown.includes('<four>'),
    );
    expect(person.shown.replaceAll('\u001b[?2004l\r', '')).toBe(expected);
    await terminal.close();
    expect(await terminal.ended).toMatchObject({ reason: 'hung-up' });
  });

  test('ends with SESSION_LOST when its sandbox is removed, and the session goes on', {
    concurrent: false,
  }, async () => {
    const session = await stack.fleet.session('gone');
    const terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.sees('$ ');
    const [container] = await inspect.containers('gone');
    await inspect.docker.getContainer(container?.id ?? '').remove({ force: true });
    await expect(terminal.ended).rejects.toMatchObject({ code: 'SESSION_LOST' });
    await using next = await session.attach();
    await new SessionTerminal(next).sees('$ ');
  });

  test('reports the signal that ended its shell, its own or of a restart', { concurrent: false }, async () => {
    const session = await stack.fleet.session('killed');
    const suicidal = await session.attach();
    await suicidal.write('kill -9 $$\n');
    expect(await suicidal.ended).toEqual({ reason: 'signalled', exitCode: null, signal: 9 });
    const restarted = await session.attach();
    await new SessionTerminal(restarted).sees('$ ');
    await session.restart();
    expect(await restarted.ended).toEqual({ reason: 'signalled', exitCode: null, signal: 9 });
  });
});

describe.concurrent('a terminal', () => {
  test('loses no output and repeats no input when Redis is killed and returns', async () => {
    await using redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
    await using stack = await startFleet({ redisUrl: redis.url });
    const session = await stack.fleet.session('redis');
    await using terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type('stty -echo; PS1=; echo re""ady\n');
    await person.sees('ready\r\n');
    await person.type(
      'for i in $(seq 1 60); do echo "line $i"; sleep 0.05; done; while read -r x; do echo "<$x>"; done\n',
    );
    await person.sees('line 10\r\n');
    await redis.kill();
    const typed = person.type('one\n');
    await delay(AWAY_MS);
    await redis.start();
    await typed;
    await person.type('two\n');
    await until(
      () => person.shown,
      (shown) => shown.includes('<two>'),
    );
    const rest = Array.from({ length: 50 }, (_, index) => `line ${index + 11}\r\n`).join('');
    expect(person.shown.replaceAll('\u001b[?2004l\r', '')).toBe(`${rest}<one>\r\n<two>\r\n`);
  });

  test('ends with its processes within 45 s after its user has died', {
    timeout: 90_000,
  }, async () => {
    await using stack = await startFleet();
    const session = await stack.fleet.session('deserted');
    const args = [
      '--conditions=@shellfleet/source',
      '--no-warnings',
      attaches,
      stack.redisUrl,
      stack.namespace,
      'deserted',
    ];
    const user = spawn(process.execPath, args, {
      env: { ...process.env, SHELLFLEET_SEAL_KEY: stack.sealKey },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(user, 'exit');
    await once(user.stdout, 'data');
    const running = async () => (await session.run('ls -d /proc/[0-9]*/exe | wc -l; ls /dev/pts')).stdout;
    expect(await running()).toContain('0\n');
    user.kill('SIGKILL');
    await exited;
    const killedAt = Date.now();
    const runningLater = () => delay(LOOK_EVERY_MS).then(running);
    await until(runningLater, (seen) => !/^0$/m.test(seen.split('\n').slice(1).join('\n')), 60_000);
    const tookMs = Date.now() - killedAt;
    console.info(`ended ${tookMs} ms after its user was killed`);
    expect(tookMs).toBeGreaterThan(20_000);
    expect(tookMs).toBeLessThan(45_000);
  });
});
