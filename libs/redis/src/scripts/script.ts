import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { ScriptArgument } from '../ioredis/changes.ts';
import { sendNow } from '../ioredis/send-later.ts';
import { mastersOf } from '../open-redis.ts';
import { throwQueueError } from '../queue-error.ts';
import { composeScript } from './compose-script.ts';

/** A Lua script that is called by its hash. Its source is sent only when Redis does not have the script. */
export interface Script {
  readonly name: string;
  readonly source: string;
  readonly sha: string;
}

const scripts: Script[] = [];
const namesBySha = new Map<string, string>();
const preludes = new Map<string, string>();

/** A script that is read, composed and hashed at its first call, because most processes call few scripts. */
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

/**
 * Defines the script `<path>.lua` with its parts of `<prelude>.lua`. The path is relative to `module` and must begin at
 * the package's source directory, because a bundle has the scripts only at these paths.
 */
export function defineScript(module: string, path: string, prelude?: string): Script {
  const readBody = () => readLua(module, path);
  const compose = prelude === undefined ? readBody : () => composeScript(readPrelude(module, prelude), readBody());
  const script = new LazyScript(path, compose);
  scripts.push(script);
  return script;
}

function readPrelude(module: string, path: string): string {
  const key = `${module} ${path}`;
  const text = preludes.get(key) ?? readLua(module, path);
  preludes.set(key, text);
  return text;
}

function readLua(module: string, path: string): string {
  return readFileSync(new URL(`./${path}.lua`, module), 'utf8');
}

/** Returns the name of the defined script with this hash, if any. */
export function scriptNameOf(sha: string): string | undefined {
  if (namesBySha.size !== scripts.length) for (const script of scripts) namesBySha.set(script.sha, script.name);
  return namesBySha.get(sha);
}

/** Loads every defined script into Redis, or into each node of a Cluster. */
export async function loadScripts(redis: Redis): Promise<void> {
  const load = (node: Redis) => Promise.all(scripts.map((script) => node.script('LOAD', script.source)));
  const loads = await Promise.allSettled(mastersOf(redis).map(load));
  const failed = loads.find((one) => one.status === 'rejected');
  if (failed !== undefined && loads.every((one) => one.status === 'rejected')) throw failed.reason;
}

/**
 * Runs a script. `onSent` is called directly after each sending, of which there is another one when Redis did not have
 * the script. Throws QUEUE_UNAVAILABLE when Redis gives no usable answer.
 */
export function runScript(
  redis: Redis,
  script: Script,
  keys: string[],
  args: ScriptArgument[],
  onSent?: () => void,
): Promise<unknown> {
  // During a reload a call gets its place in the order before it is sent.
  sendNow(redis);
  const run = () => {
    const sent = redis.evalsha(script.sha, keys.length, ...keys, ...args);
    onSent?.();
    return sent;
  };
  const order = ++calls;
  const reload = reloads.get(redis);
  const reply = reload === undefined ? run() : whenReloaded(reload, order, run);
  return reply.catch((error: unknown) => (isMissingScript(error) ? again(redis, order, run) : throwQueueError(error)));
}

// A restarted Redis has lost the scripts. Calls that failed for this reason are repeated in their original order, and
// calls that begin during the reload wait behind them, because entries are accepted in call order.
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
  void loadScripts(redis)
    .catch((error: unknown) => {
      reload.failed = error;
    })
    .then(() => {
      // What `sendLater` keeps joins this reload. Otherwise the first repeated call would send it before itself.
      sendNow(redis);
      reloads.delete(redis);
      for (const { go } of reload.waiting.sort((a, b) => a.order - b.order)) go();
    });
  return reload;
}

function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

// Parsers of script replies, which come from outside this process.

export function asArray(reply: unknown, script: string): unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply, script);
}

export function asString(value: unknown): string {
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : String(value);
}

export function asNumber(value: unknown): number {
  const number = typeof value === 'number' ? value : Number(asString(value));
  return Number.isFinite(number) ? number : 0;
}

export function unexpected(reply: unknown, script: string): ShellfleetError {
  return new ShellfleetError(
    'INTERNAL',
    `The mailbox script ${script} answered ${JSON.stringify(reply)?.slice(0, 200)}, which it never does.`,
  );
}
