import { adopt, type Entry, type Owner, open, type Submission, submit } from '@shellfleet/mailbox';
import { acquire, sessionJobLockKey } from '@shellfleet/placement';
import { fleetKeys, type Outcome, type SessionKeys, type StoredChunk, sessionKeys } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { Redis } from 'ioredis';
import { ulid } from 'ulid';
import { inject } from 'vitest';
import { startOwnRedis } from './own-redis.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
  }
}

export interface TestRedis extends AsyncDisposable {
  redis: Redis;
  url: string;
}

/** The run's Redis, or a new one when a test is run alone. Isolate tests by namespace. */
export async function connectTestRedis(): Promise<TestRedis> {
  const provided: string | undefined = inject('redisUrl');
  const own = provided === undefined ? await startOwnRedis() : undefined;
  const url = provided ?? own?.url ?? '';
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  return {
    redis,
    url,
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await own?.[Symbol.asyncDispose]();
    },
  };
}

export const newNamespace = () => `test-${ulid()}`;

/** Returns the keys of a session in a new namespace. */
export const newKeys = (session = 's1'): SessionKeys => sessionKeys(newNamespace(), 't1', session);

/** Opens a session and returns its generation. */
export async function openSession(redis: Redis, keys: SessionKeys): Promise<string> {
  const opened = await open(redis, keys, () => 'sealed spec', 'digest');
  if (opened.type !== 'created' && opened.type !== 'attached') throw new Error(`the session is ${opened.type}`);
  return opened.generation;
}

export function newSubmission(generation: string, rest: Partial<Submission> = {}): Submission {
  return {
    entryId: ulid(),
    generation,
    kind: 'command',
    payload: 'sealed payload',
    payloadHash: 'hash',
    inbox: 'p1',
    retry: 'never',
    ...rest,
  };
}

/** Submits entries one after another; returns their ids. */
export async function submitSome(
  redis: Redis,
  keys: SessionKeys,
  generation: string,
  count: number,
): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const submission = newSubmission(generation);
    await submit(redis, keys, submission);
    ids.push(submission.entryId);
  }
  return ids;
}

/**
 * Gives the session's job lock to a host, as BullMQ does when it hands out the job, and acquires and adopts the
 * session.
 */
export async function own(redis: Redis, keys: SessionKeys, host = 'h1'): Promise<Owner> {
  const owner = await acquireFor(redis, keys, host);
  const adopted = await adopt(owner);
  if (adopted.type !== 'adopted') throw new Error(`${host} did not become the owner: ${adopted.type}`);
  return owner;
}

export async function acquireFor(
  redis: Redis,
  keys: SessionKeys,
  host: string,
  through: Redis = redis,
): Promise<Owner> {
  const fleet = fleetKeys(keys.namespace);
  await redis.set(sessionJobLockKey(fleet, 'docker', keys), host, 'PX', 60_000);
  const acquired = await acquire(through, fleet, { ...keys, placementClass: 'docker' }, host, 60_000);
  if (acquired.type !== 'acquired') throw new Error(`${acquired.holder} has the lock`);
  return { redis: through, keys, fence: acquired.fence, host };
}

export const resultOf = sampleResult;

export const finishAs = (outcome: Outcome, takeNext = false) => ({ result: resultOf(outcome), epoch: 1, takeNext });

/** One piece of output that begins at the end of an entry's stored output. */
export function pieceAfter(
  stored: Pick<Entry, 'offsets' | 'seq'>,
  data: string | Uint8Array,
  rest: Partial<StoredChunk> = {},
): StoredChunk {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  const stream = rest.stream ?? 'stdout';
  const rawFrom = stored.offsets[stream];
  return {
    stream,
    seq: stored.seq,
    rawFrom,
    rawTo: rawFrom + bytes.byteLength,
    omittedBytes: 0,
    lines: 0,
    offset: 0,
    data: bytes,
    ...rest,
  };
}

export const atTheStart = { offsets: { stdout: 0, stderr: 0 }, seq: 0 };
