import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** A Lua script as it is sent: by its hash, whole only when Redis does not have it. */
export interface Script {
  name: string;
  source: string;
  sha: string;
}

const PRELUDE = readLua('./prelude.lua');
const mailboxScripts: Script[] = [];

function readLua(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}

export function defineScript(name: string, source: string): Script {
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}

/** A script on one session's keys: the prelude, then `<path>.lua` beside its caller. */
export function defineMailboxScript(path: string): Script {
  const script = defineScript(path, PRELUDE + readLua(`./${path}.lua`));
  mailboxScripts.push(script);
  return script;
}

/** Puts every mailbox script into Redis, so that calls sent together cannot overtake one another on a miss. Call it at each (re)connection. */
export async function loadMailboxScripts(redis: Redis): Promise<void> {
  await Promise.all(mailboxScripts.map((script) => redis.script('LOAD', script.source)));
}

export type ScriptArgument = string | number | Buffer;

/** Runs a mailbox script on a session's keys. Throws QUEUE_UNAVAILABLE when Redis gives no usable answer. */
export function runOnSession(
  redis: Redis,
  script: Script,
  keys: SessionKeys,
  args: ScriptArgument[],
): Promise<unknown> {
  return runScript(redis, script, [keys.queue, keys.state, keys.stream], [keys.prefix, keys.feed, ...args]);
}

export async function runScript(
  redis: Redis,
  script: Script,
  keys: string[],
  args: ScriptArgument[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isMissingScript(error)) throw toQueueError(error);
    return redis.eval(script.source, keys.length, ...keys, ...args).catch((cause: unknown) => {
      throw toQueueError(cause);
    });
  }
}

function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** What Redis, or the way to it, answered instead of a reply. */
export function toQueueError(cause: unknown): ShellfleetError {
  const text = cause instanceof Error ? cause.message : String(cause);
  const message = text.includes('OOM command not allowed')
    ? 'Redis is full (maxmemory reached), so it takes nothing new. Free memory, or raise maxmemory.'
    : `Redis gave no usable answer: ${text}. Check that it runs and can be reached.`;
  return new ShellfleetError('QUEUE_UNAVAILABLE', message, {}, { cause });
}
