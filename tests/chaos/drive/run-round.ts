import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { filesIn, isRoot } from '../../support/host-leftovers.ts';
import { startOwnRedis } from '../../support/own-redis.ts';
import { slotsFor } from '../../support/slots-for.ts';
import { type FleetMachine, startFleet } from '../../support/start-fleet.ts';
import { check } from '../check/check.ts';
import type { ClientEvent, Fault, History, Violation } from '../history/history.ts';
import { injectLane } from '../inject/inject.ts';
import { type RedisProxy, startRedisProxy } from '../inject/redis-proxy.ts';
import type { Stage } from '../inject/stage.ts';
import { planFaults } from '../plan/plan-faults.ts';
import type { RoundKind, SmallDisk } from '../plan/rounds.ts';
import { startApprover } from './approver.ts';
import { startClient } from './client-supervisor.ts';
import type { ClientSession } from './client-task.ts';
import { collectSessions } from './collect-sessions.ts';
import { describeSessions } from './describe-sessions.ts';

export interface RoundOptions {
  kind: RoundKind;
  seed: number;
  /** Time in which clients submit and faults are injected. */
  seconds: number;
  machine: Omit<FleetMachine, 'redisUrl'>;
  /** Path of the client program. */
  client: string;
  /** Restarts the engine. Present only if this run has started it. */
  restartEngine?: () => Promise<void>;
}

export interface RoundReport {
  kind: string;
  seed: number;
  startedAt: number;
  endedAt: number;
  history: History;
  violations: Violation[];
  /** Logs of the workers, by host. */
  logs: Record<string, string>;
}

/** Source of the client program, for bundleInto(). */
export const CLIENT_PROGRAM = 'tests/chaos/drive/client-process.ts';

const HOSTS = ['h1', 'h2'];
const CLIENTS = ['c1', 'c2'];
const SESSIONS_OF_CLIENT = 5;
/** Number of exposed sessions of a client. They have their marks on the host, and a short grace period. */
const EXPOSED = 3;
/** End of the id of each client's last session. Every command of it waits for an approval. */
const ASKS = `-${SESSIONS_OF_CLIENT - 1}`;
const GRACE_MS = 3_000;
/** Duration of a lease without grace. */
const LEASE_MS = 5_000;
const DEFAULT_GRACE_MS = 60_000;
/** Time after the last fault in which all faults are healed, and every ended worker runs again. */
const HEAL_WITHIN_MS = 60_000;
/**
 * Sizes of the small file systems. That of Redis has room for the log of a whole round, and for the copy while it is
 * rewritten.
 */
const DISK_SIZE: Readonly<Record<SmallDisk, string>> = { redis: '256m', host: '64m' };
/** Time after the end of the last fault in which every command has its Result. */
const END_WITHIN_MS = 120_000;
/** Time in which the marks and events of all sessions are read afterwards. */
const COLLECT_WITHIN_MS = 60_000;

/** Runs one fleet with its load and its faults, and checks everything that clients and sandboxes recorded. */
export async function runRound({
  kind,
  seed,
  seconds,
  machine,
  client,
  restartEngine,
}: RoundOptions): Promise<RoundReport> {
  await using cleanup = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'sf-chaos-'));
  cleanup.defer(() => rm(directory, { recursive: true, force: true }));
  const smallDisks = isRoot ? await mountSmallDisks(kind.smallDisks, directory, cleanup) : {};
  const redisDirectory = smallDisks.redis ?? (await made(join(directory, 'redis')));
  const redis = cleanup.use(await startOwnRedis(...kind.redis, '--dir', redisDirectory));
  const ways = new Map<string, RedisProxy>();
  for (const hostId of HOSTS) ways.set(hostId, cleanup.use(await startRedisProxy(redis.url)));
  const orderPaths = new Map(HOSTS.map((hostId) => [hostId, join(directory, `${hostId}.json`)]));
  const workspaces = await made(join(directory, 'workspaces'));

  const fleet = await startFleet({
    machine: { ...machine, redisUrl: redis.url },
    workers: HOSTS.length,
    slots: slotsFor(CLIENTS.length * SESSIONS_OF_CLIENT),
    env: {
      SHELLFLEET_WORKSPACES: workspaces,
      ...(kind.retention === undefined ? {} : { SHELLFLEET_RETENTION: kind.retention }),
      NODE_OPTIONS: `--import=${new URL('../inject/worker-hooks.ts', import.meta.url).href}`,
      ...(smallDisks.host === undefined ? {} : { SHELLFLEET_STATE_DIR: smallDisks.host }),
    },
    envs: HOSTS.map((hostId) => ({
      SHELLFLEET_REDIS_URL: (ways.get(hostId) as RedisProxy).url,
      SHELLFLEET_CHAOS_ORDER: orderPaths.get(hostId) as string,
    })),
  });
  // A worker that did not end is a violation, reported below. Its leftovers are removed in any case.
  cleanup.defer(async () => void (await Promise.allSettled([fleet[Symbol.asyncDispose]()])));
  const startedAt = Date.now();
  const until = startedAt + seconds * 1_000;
  const tasks = [];
  for (const name of CLIENTS) {
    const sessions: ClientSession[] = [];
    for (let index = 0; index < SESSIONS_OF_CLIENT; index += 1)
      sessions.push(await planSession(`${name}-${index}`, kind.marksOnHost === true || index < EXPOSED, workspaces));
    const { redisUrl, namespace, sealKey } = fleet;
    tasks.push({
      name,
      redisUrl,
      namespace,
      sealKey,
      seed,
      sessions,
      until,
      historyPath: join(directory, `${name}.jsonl`),
    });
  }
  const clients = tasks.map((task) => startClient(client, task));
  cleanup.defer(async () => void (await Promise.all(clients.map((each) => each.stop()))));
  const approver = startApprover(fleet.fleet, seed);
  cleanup.defer(() => approver.close());
  const docker = new Docker({ socketPath: machine.dockerHost.replace(/^unix:\/\//, '') });
  const sessions = tasks.flatMap((task) => task.sessions);
  const stage: Stage = {
    fleet,
    docker,
    redis,
    redisDirectory,
    proxies: ways,
    orderPaths,
    clients,
    exposedSessions: sessions.filter(({ workspace }) => workspace !== undefined).map(({ id }) => id),
    smallDisks,
    restartEngine,
    down: new Set(),
  };
  const faults: Fault[] = [];
  const violations: Violation[] = [];
  const report = (rule: string, text: string, session = '') => violations.push({ rule, session, text });
  const reportHung = async (text: string) => {
    report('hung', text);
    for (const { name, errors } of clients)
      if (errors !== '') report('hung', `${name} repeats its calls: ${errors.trim()}`);
    for (const [session, state] of await describeSessions(redis.redis, fleet.namespace, sessions))
      report('hung', state, session);
  };
  const lanes = planFaults(seed, kind, seconds * 1_000);
  const injected = Promise.all(lanes.map((lane) => injectLane(stage, lane, faults, startedAt)));
  if ((await within(seconds * 1_000 + HEAL_WITHIN_MS, injected)) === undefined) {
    const open = faults.filter(({ to }) => to === Number.POSITIVE_INFINITY);
    await reportHung(
      `not healed: ${open.map((fault) => `${fault.kind} of ${fault.target || 'nothing yet'}`).join(', ')}`,
    );
  }
  await delay(Math.max(0, until - Date.now()));

  const ended = await within(END_WITHIN_MS, Promise.all(clients.map((each) => each.ended))).catch((error: unknown) => {
    report('client', String(error));
    return [];
  });
  if (ended === undefined) await reportHung(`clients have not every Result ${END_WITHIN_MS} ms after the last fault`);
  for (const { hostId, pid } of fleet.workers) {
    if (!isAlive(pid)) report('worker died', `${hostId} has ended, and no fault ended it`);
  }

  const clientEvents = await readEvents(tasks.map(({ historyPath }) => historyPath));
  const collected = await within(
    COLLECT_WITHIN_MS,
    collectSessions(fleet.fleet, seed, clientEvents, sessions).catch((error: unknown) => {
      report('unreadable', String(error));
      return [];
    }),
  );
  if (collected === undefined) await reportHung(`not every session could be read within ${COLLECT_WITHIN_MS} ms`);
  if (approver.counts.approved === 0 || approver.counts.revoked === 0)
    report('approvals', `none was given or none revoked: ${JSON.stringify(approver.counts)}`);
  const begun = await readBegun(smallDisks.host ?? fleet.stateDirectory);
  const history: History = {
    clientEvents,
    faults,
    begun,
    forgets: kind.retention !== undefined,
    sessions: collected ?? [],
  };
  violations.push(...check(history));
  await fleet.end().catch((error: unknown) => report('worker', String(error).slice(0, 2_000)));
  violations.push(...(await findLeftovers(stage)));
  const logs = Object.fromEntries(fleet.workers.map(({ hostId, log }) => [hostId, log]));
  return { kind: kind.name, seed, startedAt, endedAt: Date.now(), history, violations, logs };
}

/** A line of a journal is `<fingerprint> <namespace> <tenant> <session> <entry> <generation>`. */
async function readBegun(stateDirectory: string): Promise<string[]> {
  const names = await readdir(stateDirectory, { recursive: true });
  const journals = names.filter((name) => name.endsWith('.begun')).map((name) => join(stateDirectory, name));
  const texts = await Promise.all(journals.map((path) => readFile(path, 'utf8')));
  return texts.flatMap((text) =>
    text.split('\n').flatMap((line) => {
      const [, , , session, entry] = line.split(' ');
      return session === undefined || entry === undefined ? [] : [`${session}.${entry}`];
    }),
  );
}

/** Resolves with the work's value, or with undefined when it takes longer. */
function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, delay(ms, undefined, { ref: false })]);
}

async function made(directory: string): Promise<string> {
  await mkdir(directory);
  return directory;
}

async function planSession(id: string, exposed: boolean, workspaces: string): Promise<ClientSession> {
  const asks = id.endsWith(ASKS) ? ({ approval: 'unless-trusted' } as const) : {};
  if (!exposed) return { id, leaseMs: LEASE_MS + DEFAULT_GRACE_MS, spec: asks };
  const workspace = await made(join(workspaces, id));
  await chmod(workspace, 0o777);
  const onHostLoss = id.endsWith('0') ? 'fail' : 'recreate';
  const spec = { workspace, hostGraceMs: GRACE_MS, onHostLoss, ...asks } as const;
  return { id, leaseMs: LEASE_MS + GRACE_MS, workspace, spec };
}

async function mountSmallDisks(
  wanted: readonly SmallDisk[],
  directory: string,
  cleanup: AsyncDisposableStack,
): Promise<Stage['smallDisks']> {
  const run = promisify(execFile);
  const disks: Stage['smallDisks'] = {};
  for (const disk of wanted) {
    const path = join(directory, `${disk}-disk`);
    await mkdir(path);
    await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE[disk]}`, 'shellfleet-chaos', path]);
    cleanup.defer(async () => void (await run('umount', ['--lazy', path])));
    disks[disk] = path;
  }
  return disks;
}

async function readEvents(paths: string[]): Promise<ClientEvent[]> {
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')));
  return texts.flatMap((text) =>
    text.split('\n').flatMap((line) => {
      try {
        return [JSON.parse(line) as ClientEvent];
      } catch {
        return []; // the line was cut when the client died
      }
    }),
  );
}

/** Returns a violation for everything that remains after the end of the fleet without an owner. */
async function findLeftovers({ fleet, docker, smallDisks }: Stage): Promise<Violation[]> {
  const filters = { label: [`shellfleet.namespace=${fleet.namespace}`] };
  const containers = await docker.listContainers({ all: true, filters });
  const files = await filesIn(`${smallDisks.host ?? fleet.stateDirectory}/hosts/*`);
  const left = [...containers.map(({ Names }) => `container ${Names[0]}`), ...files.map((file) => `file ${file}`)];
  return left.map((text) => ({ rule: 'left over', session: '', text }));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
