import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isShellfleetError, type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { composeScript } from './compose-script.ts';
import { mastersOf } from './open-redis.ts';
import type { ScriptArgument } from './script-call.ts';

/** A Lua script. It is called by its hash; its source is sent only when Redis does not have it. */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

const prelude = readOnce('prelude');
const approvalsPrelude = readOnce('approvals-prelude');
const scripts: Script[] = [];

function readLua(path: string, module = import.meta.url): string {
  return readFileSync(new URL(`./${path}.lua`, module), 'utf8');
}

function readOnce(path: string): () => string {
  let text: string | undefined;
  return () => {
    text ??= readLua(path);
    return text;
  };
}

/** Read, composed and hashed at the first call: most processes call few of the scripts. */
class LazyScript implements Script {
  readonly name: string;
  readonly #compose: () => string;
  #source?: string;
  #sha?: string;

  constructor(name: string, compose: () => string) {
    this.name = name;
    this.#compose = compose;
  }

  get source(): string {
    this.#source ??= this.#compose();
    return this.#source;
  }

  get sha(): string {
    this.#sha ??= createHash('sha1').update(this.source).digest('hex');
    return this.#sha;
  }
}

function define(name: string, compose: () => string): Script {
  const script = new LazyScript(name, compose);
  scripts.push(script);
  return script;
}

/** Defines a script that uses no prelude: `<path>.lua`, relative to the module with this URL, by default to this one. */
export function defineScript(path: string, module?: string): Script {
  return define(path, () => readLua(path, module));
}

/** A script on one session's keys: what it uses of the prelude, then `<path>.lua` beside its caller. */
export function defineMailboxScript(path: string): Script {
  return define(path, () => composeScript(prelude(), readLua(path)));
}

/** A script on the approvals of one tenant: what it uses of their prelude, then `approvals/<name>.lua`. */
export function defineApprovalsScript(name: string): Script {
  const path = `approvals/${name}`;
  return define(path, () => composeScript(approvalsPrelude(), readLua(path)));
}

/** Loads every script into Redis, of a Cluster into each node that it reaches. A call whose script is missing in Redis does so, too. */
export async function loadMailboxScripts(redis: Redis): Promise<void> {
  const load = (node: Redis) => Promise.all(scripts.map((script) => node.script('LOAD', script.source)));
  const loads = await Promise.allSettled(mastersOf(redis).map(load));
  const failed = loads.find((one) => one.status === 'rejected');
  if (failed !== undefined && loads.every((one) => one.status === 'rejected')) throw failed.reason;
}

/** Runs a mailbox script on a session's keys. Throws QUEUE_UNAVAILABLE when Redis gives no usable answer. */
export function runOnSession(
  redis: Redis,
  script: Script,
  keys: SessionKeys,
  args: ScriptArgument[],
): Promise<unknown> {
  return runScript(redis, script, [keys.queue, keys.state, keys.stream], [keys.prefix, keys.feed, ...args]);
}

export function runScript(redis: Redis, script: Script, keys: string[], args: ScriptArgument[]): Promise<unknown> {
  const run = () => redis.evalsha(script.sha, keys.length, ...keys, ...args);
  const order = ++calls;
  const reload = reloads.get(redis);
  const reply = reload === undefined ? run() : whenReloaded(reload, order, run);
  return reply.catch((error: unknown) => (isMissingScript(error) ? again(redis, order, run) : throwQueueError(error)));
}

// A restarted Redis has lost the scripts. Calls that it rejected for that reason are repeated in the order in which they were first made,
// and calls made meanwhile do not overtake them: entries are accepted in call order. Redis answers the load after every call that was under
// way.
interface Reload {
  waiting: { order: number; go(): void }[];
  failed?: unknown;
}
const reloads = new WeakMap<Redis, Reload>();
let calls = 0;

function again(redis: Redis, order: number, run: () => Promise<unknown>): Promise<unknown> {
  const reload = reloads.get(redis) ?? startReload(redis);
  return whenReloaded(reload, order, run).catch(throwQueueError);
}

function whenReloaded(reload: Reload, order: number, run: () => Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const go = () => (reload.failed === undefined ? run().then(resolve, reject) : reject(reload.failed));
    reload.waiting.push({ order, go });
  });
}

function startReload(redis: Redis): Reload {
  const reload: Reload = { waiting: [] };
  reloads.set(redis, reload);
  void loadMailboxScripts(redis)
    .catch((error: unknown) => {
      reload.failed = error;
    })
    .then(() => {
      reloads.delete(redis);
      for (const { go } of reload.waiting.sort((a, b) => a.order - b.order)) go();
    });
  return reload;
}

function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

export function throwQueueError(cause: unknown): never {
  throw toQueueError(cause);
}

/** Converts a failure of Redis, or of the connection to it. An error that is one of ours stays as it is. */
export function toQueueError(cause: unknown): ShellfleetError {
  if (isShellfleetError(cause)) return cause;
  const text = describeCause(cause);
  const full = text.includes('OOM command not allowed');
  const message = full
    ? 'Redis is full (maxmemory reached), so it takes nothing new. Free memory, or raise maxmemory.'
    : `Redis gave no usable answer: ${text}. Check that it runs and can be reached.`;
  return new ShellfleetError('QUEUE_UNAVAILABLE', message, full ? { full } : {}, { cause });
}

/** Whether Redis refused this call because it has no room for new data. */
export function isRedisFull(error: unknown): boolean {
  return isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE' && error.context.full === true;
}

/** ioredis describes two failures of a host's calls by its own options. */
function describeCause(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  if (text.startsWith('Reached the max retries')) return 'the connection broke before its answer';
  return text.startsWith("Stream isn't writeable") ? 'there is no connection to it' : text;
}
