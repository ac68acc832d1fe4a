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

/** Runs a mailbox script on a session's keys. Throws QUEUE_UNAVAILABLE when Redis gives no usable answer. */
export function runOnSession(
  redis: Redis,
  script: Script,
  keys: SessionKeys,
  args: ScriptArgument[],
  onSent?: () => void,
): Promise<unknown> {
  return runScript(redis, script, [keys.state], [keys.prefix, keys.feed, ...args], onSent);
}
