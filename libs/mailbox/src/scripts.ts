import type { SessionKeys } from '@shellfleet/protocol';
import { defineScript as defineLua, runScript, type Script, type ScriptArgument } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** Defines a script without a prelude: `<path>.lua` in this directory. */
export const definePlainScript = (path: string): Script => defineLua(import.meta.url, path);

/** Defines a script on one session's keys: `<path>.lua` in this directory, with its parts of the prelude. */
export const defineMailboxScript = (path: string): Script => defineLua(import.meta.url, path, 'prelude');

/** Defines a script on the approvals of one tenant: `approvals/<name>.lua`, with its parts of their prelude. */
export const defineApprovalsScript = (name: string): Script =>
  defineLua(import.meta.url, `approvals/${name}`, 'approvals-prelude');

/** Defines a script on one detached batch: `batches/<name>.lua`, with its parts of their prelude. */
export const defineBatchScript = (name: string): Script =>
  defineLua(import.meta.url, `batches/${name}`, 'batches-prelude');

/**
 * Runs a mailbox script on a session's keys, after a call on this session that waits to be sent. Throws
 * QUEUE_UNAVAILABLE when Redis gives no usable answer.
 */
export function runOnSession(
  redis: Redis,
  script: Script,
  keys: SessionKeys,
  args: ScriptArgument[],
  onSent?: () => void,
): Promise<unknown> {
  takeUnsent(redis, keys)?.send();
  return runScript(redis, script, [keys.state], [keys.prefix, keys.feed, ...args], onSent);
}

/** A call on a session that waits to be sent. */
export interface UnsentCall {
  /** Sends the call by `runOnSession`. */
  send(): void;
}

interface UnsentCalls {
  /** Calls by the key of their session's state. */
  readonly calls: Map<string, UnsentCall>;
  isScheduled: boolean;
}

const unsent = new WeakMap<Redis, UnsentCalls>();

/** Sends a call at the end of this turn of the event loop, or earlier: before the next call on its session. */
export function sendLater(redis: Redis, keys: SessionKeys, call: UnsentCall): void {
  const waiting = unsent.get(redis) ?? { calls: new Map(), isScheduled: false };
  unsent.set(redis, waiting);
  waiting.calls.set(keys.state, call);
  if (waiting.isScheduled) return;
  waiting.isScheduled = true;
  process.nextTick(sendAll, waiting);
}

/** Removes and returns the call on a session that waits to be sent, if there is one. The caller sends it. */
export function takeUnsent(redis: Redis, keys: SessionKeys): UnsentCall | undefined {
  const calls = unsent.get(redis)?.calls;
  const call = calls?.get(keys.state);
  if (call !== undefined) calls?.delete(keys.state);
  return call;
}

function sendAll(waiting: UnsentCalls): void {
  const calls = [...waiting.calls.values()];
  waiting.calls.clear();
  waiting.isScheduled = false;
  for (const call of calls) call.send();
}
