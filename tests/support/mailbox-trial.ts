import { cancel, close, open, recordNotice, submit, sweep } from '@shellfleet/mailbox';
import { type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { createHostileRedis, isCrash } from './hostile-redis.ts';
import * as invariants from './invariants.ts';
import { acquireFor, newSubmission } from './mailbox-session.ts';
import { createRandom, type Random } from './random.ts';
import { hostRun, type World } from './simulated-host.ts';
import { plannedBytes } from './simulated-output.ts';

/** The result of one trial. `problems` is empty when every invariant held. */
export interface TrialReport {
  seed: number;
  problems: string[];
  commands: number;
  crashes: number;
  acquisitions: number;
  reran: number;
  outcomes: Record<string, number>;
}

interface Trial {
  random: Random;
  keys: SessionKeys;
  world: World;
  /** connection on which every call arrives twice and some callers die */
  hostile: Redis;
  calm: Redis;
  accepted: Set<string>;
  idempotent: Set<string>;
  /** entries for which cancel() returned true */
  promised: Set<string>;
  crashes: number;
  acquisitions: number;
}

const HOSTS = ['h1', 'h2', 'h3'] as const;
const PER_PRODUCER = 8;

/**
 * Runs two producers and three hosts on one session at the same time, with every call doubled. Then an owner without
 * faults empties the mailbox, and the session is closed.
 */
export async function runTrial(redis: Redis, namespace: string, seed: number): Promise<TrialReport> {
  const random = createRandom(seed);
  const keys = sessionKeys(namespace, 't1', `s${seed}`);
  const late: (() => Promise<unknown>)[] = [];
  const world: World = { random, keepers: new Map(), ran: new Map(), surprises: [] };
  // Invariant 1: the current fence never falls. One connection replies in order, so the replies are compared in order.
  let newest = 0;
  const look = async () => {
    const fence = Number((await redis.hget(keys.state, 'fence')) ?? 0);
    if (fence < newest) world.surprises.push(`the fence fell from ${newest} to ${fence}`);
    newest = Math.max(newest, fence);
  };
  const hostile = createHostileRedis(redis, { random, crash: 0.03, late, look });
  const sets = { accepted: new Set<string>(), idempotent: new Set<string>(), promised: new Set<string>() };
  const trial: Trial = { random, keys, world, hostile, calm: redis, ...sets, crashes: 0, acquisitions: 0 };

  const producers = [producer(trial, 'p1'), producer(trial, 'p2')];
  const upkeep = Promise.all(producers).then(() => bystander(trial));
  const runs: Promise<void>[] = [bystander(trial)];
  for (let index = 0; index < 4 + random.below(4); index += 1) {
    runs.push(run(trial, random.pick(HOSTS), hostile));
    for (let turns = random.below(4); turns > 0; turns -= 1) await redis.ping();
  }
  await Promise.all([...producers, ...runs, upkeep]);
  await drain(trial);
  for (const call of late.splice(0)) await call();
  await drain(trial);
  const events = await invariants.readEvents(redis, keys);
  const problems = [...world.surprises, ...check(trial, events), ...(await invariants.leftovers(redis, keys))];
  await close(redis, keys, undefined, true);
  problems.push(...(await invariants.keysWithoutExpiry(redis, keys.prefix)).map((key) => `${key} would stay for ever`));

  const outcomes: Record<string, number> = {};
  for (const outcome of invariants.outcomesOf(events).values()) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  const starts = invariants.idsOf(events, 'command.started');
  const reran = starts.length - new Set(starts).size;
  return {
    seed,
    problems,
    commands: trial.accepted.size,
    crashes: trial.crashes,
    acquisitions: trial.acquisitions,
    reran,
    outcomes,
  };
}

function check({ accepted, idempotent, promised, world }: Trial, events: invariants.StreamEvent[]): string[] {
  const outcomes = invariants.outcomesOf(events);
  // Each start in the stream stands for at most one run. A separate check proves that only idempotent entries start
  // more than once.
  const starts = invariants.idsOf(events, 'command.started');
  const ranUnsaid = [...world.ran].filter(([id, count]) => count > starts.filter((start) => start === id).length);
  const wrongBytes = [...outcomes].filter(([id, outcome]) => {
    const { stdout, stderr } = invariants.outputOf(events, id);
    const planned = plannedBytes(id);
    const isWhole = stdout.equals(planned.stdout) && stderr.equals(planned.stderr);
    const isPart =
      planned.stdout.subarray(0, stdout.length).equals(stdout) &&
      planned.stderr.subarray(0, stderr.length).equals(stderr);
    return outcome === 'success' ? !isWhole : !isPart;
  });
  return [
    ...invariants.notAcceptedOnce(events),
    ...invariants.notCompletedOnce(events, accepted),
    ...invariants.startedTwice(events, idempotent),
    ...invariants.startedOutOfOrder(events),
    ...invariants.overlapping(events),
    ...invariants.outputGaps(events),
    ...ranUnsaid.map(([id, count]) => `${id} ran ${count} times, more often than it was started`),
    ...wrongBytes.map(([id, outcome]) => `${id} (${outcome}) has other output than it printed`),
    ...[...promised]
      .filter((id) => outcomes.get(id) !== 'cancellation')
      .map((id) => `${id} was cancelled and is ${outcomes.get(id)}`),
  ];
}

/** Submits entries one after another. At random it cancels one, or closes the session and opens its next generation. */
async function producer(trial: Trial, inbox: string): Promise<void> {
  const { hostile, keys, random } = trial;
  let generation = await alive(trial, () => openAgain(trial));
  const own: string[] = [];
  for (let index = 0; index < PER_PRODUCER; index += 1) {
    const retry = random.chance(0.3) ? 'idempotent' : 'never';
    const deadline = random.chance(0.1) ? { startDeadlineMs: 1 + random.below(5) } : {};
    const submission = newSubmission(generation, { inbox, retry, ...deadline });
    if (retry === 'idempotent') trial.idempotent.add(submission.entryId);
    const submitted = await survive(trial, () => submit(hostile, keys, submission));
    if (submitted?.type === 'closed') generation = await alive(trial, () => openAgain(trial));
    if (submitted?.type === 'accepted' || submitted?.type === 'accepted-before') {
      trial.accepted.add(submission.entryId);
      own.push(submission.entryId);
    }
    const victim = own[random.below(own.length + 1)];
    if (victim !== undefined && random.chance(0.25)) {
      const cancelled = await survive(trial, () => cancel(hostile, keys, victim, 'enough'));
      if (cancelled?.type === 'ended' || cancelled?.type === 'marked') trial.promised.add(victim);
    }
    if (random.chance(0.04)) await survive(trial, () => close(hostile, keys, generation, random.chance(0.5)));
  }
}

async function openAgain({ calm, hostile, keys }: Trial): Promise<string> {
  for (;;) {
    const opened = await open(hostile, keys, () => 'sealed spec', 'digest');
    if (opened.type === 'created' || opened.type === 'attached') return opened.generation;
    await calm.ping(); // the previous generation is still closing; its owner, or the last drain, completes the close
    await close(calm, keys, undefined, true);
  }
}

/** Sweeps the session, and records notices under the current fence or the one before it. */
async function bystander(trial: Trial): Promise<void> {
  const { hostile, calm, keys, random } = trial;
  for (let index = 0; index < 4; index += 1) {
    await survive(trial, () => sweep(hostile, keys));
    const fence = Number((await calm.hget(keys.state, 'fence')) ?? 0) - random.below(2);
    await survive(trial, () => recordNotice(hostile, keys, fence, 'host.unreachable', {}));
  }
}

/** A host gets the session's job, and works until its worker dies. Sometimes the machine dies too. */
async function run(trial: Trial, host: string, redis: Redis): Promise<void> {
  trial.acquisitions += 1;
  const crashes = trial.crashes;
  await survive(trial, async () => {
    const owner = await acquireFor(trial.calm, trial.keys, host, redis).catch(ignoreRefusal);
    if (owner !== undefined) await hostRun(owner, trial.world);
  });
  if (trial.crashes > crashes && trial.random.chance(0.4)) trial.world.keepers.delete(host);
}

/** Ignores the refusal of `acquire`, because another host may have got the job after the lock. */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof Error && error.message.endsWith('has the lock')) return undefined;
  throw error;
}

/** Runs owners without faults until the mailbox is empty. */
async function drain(trial: Trial): Promise<void> {
  const { calm, keys } = trial;
  const hasWork = async () => (await sweep(calm, keys)).hasWork;
  for (let index = 0; (await hasWork()) && index < 20; index += 1) await run(trial, trial.random.pick(HOSTS), calm);
}

async function survive<T>(trial: Trial, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!isCrash(error)) throw error;
    trial.crashes += 1;
    return undefined;
  }
}

/** Repeats the action until no crash interrupts it: a producer that died is started again. */
async function alive<T>(trial: Trial, act: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await survive(trial, act);
    if (answer !== undefined) return answer;
  }
}
