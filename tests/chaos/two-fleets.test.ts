import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { fleetIdentityKey, parseKeyspace, toFleetIdentity } from '@shellfleet/protocol';
import Docker from 'dockerode';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { startFleet, type TestFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Two fleets of one namespace on one engine, here with equal host ids and in two databases of one
// Redis.

const program = (name: string) => fileURLToPath(new URL(`../fixtures/${name}.ts`, import.meta.url));
const docker = new Docker({ socketPath: inject('dockerHost').replace(/^unix:\/\//, '') });
const START = 'X=alive; touch /tmp/began; until [ -e /tmp/go ]; do sleep 0.1; done; echo "still $X"';

let own: OwnRedis;
let fleets: { killed: TestFleet; other: TestFleet };
beforeAll(async () => {
  own = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
});
afterAll(() => own?.[Symbol.asyncDispose]());

beforeEach(async () => {
  const namespace = `two-${randomBytes(5).toString('hex')}`;
  const start = (database: number, name: string) =>
    startFleet({ namespace, redisUrl: `${own.url}/${database}`, program: program(name) });
  const [killed, other] = await Promise.all([start(0, 'supervises-worker'), start(1, 'worker-with-fast-reaper')]);
  fleets = { killed, other };
});
afterEach(async () => {
  for (const { Id } of await planted()) await docker.getContainer(Id).remove({ force: true });
  await Promise.all(Object.values(fleets ?? {}).map((fleet) => fleet[Symbol.asyncDispose]()));
});

const workerOf = ({ workers }: TestFleet) => workers[0] as TestWorker;
/** Returns the pid of the serving process, below its supervisor. */
const servingPid = () => Number(/^worker (\d+)$/m.exec(workerOf(fleets.killed).log)?.[1]);
const fleetIdOf = ({ keyspace }: TestFleet) => parseKeyspace(keyspace).fleetId;

/**
 * Creates a container like one of a host that the fleet no longer lists. Without a fleet id, the container is like one
 * of a version without fleet ids.
 */
async function plant(fleetId?: string): Promise<void> {
  const labels = {
    namespace: fleets.killed.namespace,
    tenant: 'default',
    session: 'left',
    host: 'gone',
    sandbox: '0'.repeat(12),
  };
  const all = { ...labels, transport: 'socket', 'keeper-protocol': '1', ...(fleetId && { fleet: fleetId }) };
  await docker.createContainer({
    Image: inject('sessionImage'),
    Cmd: ['sleep', '600'],
    Labels: Object.fromEntries(Object.entries(all).map(([name, value]) => [`shellfleet.${name}`, value])),
  });
}

async function planted(): Promise<Docker.ContainerInfo[]> {
  const filters = { label: [`shellfleet.namespace=${fleets.killed.namespace}`, 'shellfleet.host=gone'] };
  return docker.listContainers({ all: true, filters });
}

/** Waits until the reaper of the other fleet has removed the containers of its own fleet whose hosts are gone. */
async function untilReaped(): Promise<void> {
  await plant(fleetIdOf(fleets.other));
  await until(planted, (left) => left.every(({ Labels }) => Labels['shellfleet.fleet'] !== fleetIdOf(fleets.other)));
}

const SUPERVISOR = 'the supervisor';
const REDIS = 'Redis';
const PARTS: [part: string, kill: () => Promise<void>, again: () => Promise<void>][] = [
  [
    'the worker and its supervisor',
    async () => {
      const pid = servingPid();
      await workerOf(fleets.killed).kill();
      process.kill(pid, 'SIGKILL');
    },
    () => workerOf(fleets.killed).start(),
  ],
  [SUPERVISOR, () => workerOf(fleets.killed).kill(), async () => {}],
  [REDIS, () => own.kill(), () => own.start()],
];

describe('two fleets of one namespace, with equal host ids', () => {
  test.each(PARTS)('leave each other alone after kill -9 of %s', async (part, kill, again) => {
    const { killed, other } = fleets;
    expect(fleetIdOf(killed)).not.toBe(fleetIdOf(other));
    const all = await Promise.all(
      [killed, other].map(async ({ fleet }) => {
        const session = await fleet.session('victim');
        return { session, command: await session.submit(START, { timeoutMs: 120_000 }) };
      }),
    );
    const running = await until(
      () => docker.listContainers({ filters: { label: [`shellfleet.namespace=${killed.namespace}`] } }),
      (containers) => containers.length === 2,
    );
    for (const { Id } of running)
      await until(
        () => exitCodeOf(Id, ['test', '-e', '/tmp/began']),
        (code) => code === 0,
      );
    await plant();
    await kill();
    if (part !== REDIS) await untilReaped();
    await again();
    await untilReaped();
    for (const { Id } of running) expect(await exitCodeOf(Id, ['touch', '/tmp/go'])).toBe(0);
    for (const { session, command } of all) {
      expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'still alive\n' });
      expect(await session.run('echo $X')).toMatchObject({ stdout: 'alive\n', shell: { state: 'kept', epoch: 1 } });
    }
    // A container without a fleet id stays for `prune`.
    expect((await planted()).map(({ Labels }) => Labels['shellfleet.fleet'])).toEqual([undefined]);
    if (part === SUPERVISOR) await endAlone(servingPid());
  });
});

describe('a worker in a namespace of two fleets', () => {
  test('stops when its Redis has the other fleet, and adopts its shells afterwards', async () => {
    const { other } = fleets;
    const worker = workerOf(other);
    const session = await other.fleet.session('stays');
    await session.run('X=alive');
    const redis = new Redis(`${own.url}/1`);
    const key = fleetIdentityKey(other.namespace);
    await redis.set(key, toFleetIdentity('eeeeeeeeeeee'));
    await until(
      async () => isAlive(worker.pid),
      (alive) => !alive,
    );
    expect(worker.log).toMatch(/"msg":"worker.other-fleet"/);
    await expect(worker.start()).rejects.toThrow(`belongs to the fleet ${fleetIdOf(other)}`);
    await redis.set(key, toFleetIdentity(fleetIdOf(other)));
    redis.disconnect();
    await worker.start();
    const again = await other.connect();
    const same = await again.attach('stays');
    expect(await same?.run('echo $X')).toMatchObject({ stdout: 'alive\n', shell: { state: 'kept', epoch: 1 } });
  });

  test('reports the other fleet when it starts, and so does doctor', async () => {
    const { killed, other } = fleets;
    const [theirs, { namespace }] = [fleetIdOf(killed), other];
    await (await killed.fleet.session('there')).run('true');
    await workerOf(other).kill();
    await workerOf(other).start();
    const told = await until(
      async () =>
        (await other.fleet.hosts()).flatMap(({ warnings = [] }) => warnings).filter((one) => one.includes(theirs)),
      ({ length }) => length > 0,
    );
    expect(told).toEqual([
      `The Docker engine of this host also has containers of the fleet ${theirs}, of the namespace ${namespace} too; \`shellfleet prune\` removes those that nobody owns.`,
      `The fleet ${theirs}, of the namespace ${namespace} too, uses another database of this Redis.`,
    ]);
    const log = workerOf(other)
      .log.split('\n')
      .filter((line) => line.includes('fleet.another-found'));
    expect(log.flatMap((line) => (line.includes(theirs) ? [JSON.parse(line).problem] : []))).toEqual(
      expect.arrayContaining(told),
    );
    const { stdout } = await new FleetCli({ ...other, redisUrl: `${own.url}/1` }).text(['doctor'], {
      env: { DOCKER_HOST: inject('dockerHost') },
    });
    expect(stdout).toMatch(
      new RegExp(
        `present +other fleets +of the namespace ${namespace}: ${theirs}: 1 container, of which nobody owns 0\\n`,
      ),
    );
  });
});

/** Ends a worker without a supervisor, which no other process would end. */
async function endAlone(pid: number): Promise<void> {
  process.kill(pid, 'SIGINT');
  await until(
    async () => isAlive(pid),
    (alive) => !alive,
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function exitCodeOf(id: string, command: string[]): Promise<number | null> {
  const run = await docker.getContainer(id).exec({ Cmd: command, AttachStdout: true });
  const stream = await run.start({});
  stream.resume();
  await once(stream, 'end');
  for (;;) {
    const { Running, ExitCode } = await run.inspect();
    if (!Running) return ExitCode;
  }
}
