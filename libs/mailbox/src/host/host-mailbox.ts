import { type RetryOptions, retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { answerHeld } from '../producer/answer-held.ts';
import { readRecord } from '../read/record.ts';
import { readCancelRequest, readCloseRequest } from '../read/requests.ts';
import { readStream } from '../read/stream.ts';
import { adopt } from './adopt.ts';
import { announce } from './announce.ts';
import { append } from './append.ts';
import { appendTerminalOutput } from './append-terminal-output.ts';
import { clear } from './clear.ts';
import { closeUndriven } from './close-undriven.ts';
import { type Declaration, declare } from './declare.ts';
import { finish } from './finish.ts';
import { readFirstResult } from './first-attempt.ts';
import { hold } from './hold.ts';
import { readInput } from './input.ts';
import { addLate } from './late.ts';
import type { Owner } from './owner.ts';
import { peek } from './peek.ts';
import { putBack } from './put-back.ts';
import { refuseRequest } from './refuse-request.ts';
import { release } from './release.ts';
import { rerun } from './rerun.ts';
import { take } from './take.ts';
import { withdraw } from './withdraw.ts';

/** Calls of a host to the mailbox of a session that it owns. */
const CALLS = {
  ...{ adopt, announce, append, appendTerminalOutput, addLate, clear, closeUndriven, finish, hold, peek, putBack },
  ...{ refuseRequest, release, rerun, take, withdraw },
  ...{ readCancelRequest, readCloseRequest, readFirstResult, readInput },
  readRecord: ({ redis, keys }: Owner, entryId: string) => readRecord(redis, keys, entryId),
  readStream: ({ redis, keys }: Owner, from: string, count: number) => readStream(redis, keys, from, count),
  releaseHeld: ({ redis, keys }: Owner, entryId: string) => answerHeld(redis, keys, entryId, { type: 'release' }),
};

export type HostMailboxCalls = typeof CALLS;

/** The same calls without their first argument, the owner. */
export type OwnedCalls = {
  readonly [Name in keyof HostMailboxCalls]: HostMailboxCalls[Name] extends (
    owner: Owner,
    ...rest: infer Rest
  ) => infer Reply
    ? (...rest: Rest) => Reply
    : never;
};

/** Mailbox of an owned session. Repeats each call until Redis answers or the owner loses the session. */
export interface HostMailbox extends OwnedCalls {
  readonly owner: Owner;
  /**
   * Repeats the whole function `call`, so that each attempt can choose other calls. The calls of `once` are not
   * repeated one by one.
   */
  retry<T>(call: (once: OwnedCalls) => Promise<T>, options?: RetryOptions): Promise<T>;
  /**
   * Restores the session over a connection that no other call uses yet. Is not repeated: the caller repeats its whole
   * recovery.
   */
  declare(over: Redis, declared: Declaration): Promise<void>;
  /** Returns the mailbox of an owner that starts only entries that are cleared under the digest from `admission`. */
  under(admission: () => string): HostMailbox;
}

export interface HostMailboxOptions {
  signal: AbortSignal;
  /** Called for each reply `fenced` before the caller gets it: another host owns the session. */
  onFenced(): void;
}

/** Returns the mailbox of a session for `owner`. In tests, `calls` replace those of the same names. */
export function createHostMailbox(
  owner: Owner,
  options: HostMailboxOptions,
  calls: Partial<HostMailboxCalls> = {},
): HostMailbox {
  const { signal, onFenced } = options;
  const report = <Reply>(reply: Reply): Reply => {
    if ((reply as { type?: string } | undefined)?.type === 'fenced') onFenced();
    return reply;
  };
  const once = mapCalls(
    { ...CALLS, ...calls },
    (call) =>
      async (...args) =>
        report(await call(owner, ...args)),
  );
  const retry: HostMailbox['retry'] = (call, how) => retryWhileRedisIsDown(() => call(once), signal, how);
  return {
    ...mapCalls(
      once,
      (call) =>
        (...args) =>
          retry(() => call(...args)),
    ),
    owner,
    retry,
    declare: async (redis, declared) => void report(await declare({ ...owner, redis }, declared)),
    under: (admission) => createHostMailbox(underAdmission(owner, admission), options, calls),
  };
}

type Call = (...args: unknown[]) => Promise<unknown>;

function mapCalls(calls: HostMailboxCalls | OwnedCalls, change: (call: Call) => Call): OwnedCalls {
  const changed = Object.entries(calls).map(([name, call]) => [name, change(call as Call)]);
  return Object.fromEntries(changed) as OwnedCalls;
}

function underAdmission(owner: Owner, admission: () => string): Owner {
  return {
    ...owner,
    get admission() {
      return admission();
    },
  };
}
