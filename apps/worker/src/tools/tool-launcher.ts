import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ATTRIBUTES } from '@shellfleet/protocol';
import type { LogFields, Logger } from '../log/logger.ts';
import { compileCache, runsFromSource } from './compile-cache.ts';
import type { FromLauncher, ToLauncher } from './launcher/messages.ts';
import type { PreparedDeath, PreparedOptions, ProcessLimits } from './prepared-processes.ts';
import { nodeArguments } from './start-process.ts';
import { endStrays } from './stray-processes.ts';
import type { ToolProcessEnd, ToolProcessOptions } from './tool-process.ts';

// Runs tool calls in processes that a separate process starts, the launcher.
// TOOL-LAUNCHER-1. The launcher and all processes that it started end with the worker.
// TOOL-LAUNCHER-2. When a launcher dies, its calls fail, its processes end, and the next call starts another launcher.

export interface ToolLauncherOptions extends Omit<PreparedOptions, 'onDeath'> {
  logger: Logger;
  /** Ends the processes with this mark, which a dead launcher left. */
  clear?: (mark: string) => Promise<unknown>;
}

interface Running {
  resolve(end: ToolProcessEnd): void;
  reject(error: Error): void;
}

const main = fileURLToPath(new URL(`./launcher/main.${runsFromSource ? 'ts' : 'js'}`, import.meta.url));

export class ToolLauncher {
  readonly #options: ToolLauncherOptions;
  readonly #running = new Map<number, Running>();
  #launcher: ChildProcess | undefined;
  #cleared: Promise<unknown> = Promise.resolve();
  #lastId = 0;
  #isClosed = false;

  constructor(options: ToolLauncherOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#launcher?.pid;
  }

  prepare(limits: ProcessLimits): void {
    this.#send({ type: 'prepare', limits });
  }

  /** Runs one call. Rejects if the launcher dies. */
  async run(limits: ProcessLimits, { signal, ...call }: ToolProcessOptions): Promise<ToolProcessEnd> {
    await this.#cleared;
    this.#lastId += 1;
    const id = this.#lastId;
    const ended = new Promise<ToolProcessEnd>((resolve, reject) => this.#running.set(id, { resolve, reject }));
    const stop = () => this.#send({ type: 'stop', id });
    try {
      this.#send({ type: 'run', id, limits, call });
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      return await ended;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#running.delete(id);
      this.#endWhenUnused();
    }
  }

  clear(): void {
    if (this.#launcher !== undefined) this.#send({ type: 'clear' });
  }

  /** Starts no more processes for later calls. The launcher ends with its last call. */
  close(): void {
    this.#isClosed = true;
    if (this.#launcher !== undefined) this.#send({ type: 'close' });
    this.#endWhenUnused();
  }

  #send(message: ToLauncher): void {
    this.#launcher ??= this.#start();
    // The exit event reports a dead launcher, so errors of `send` are ignored.
    this.#launcher.send(message, () => {});
  }

  #start(): ChildProcess {
    const { logger, clear = endStrays, ...options } = this.#options;
    const launcher = fork(main, [], {
      cwd: '/',
      execArgv: nodeArguments,
      // Neither the launcher nor the processes of calls get variables of the worker.
      env: { ...options.env, NODE_COMPILE_CACHE: compileCache },
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    launcher.on('message', (message: FromLauncher) => {
      if (message.type === 'ended') this.#running.get(message.id)?.resolve(message.end);
      else logger.warn(describeDeath(message.death), 'tools.prepared-died');
    });
    let isGone = false;
    const gone = (cause?: unknown) => {
      if (isGone) return;
      isGone = true;
      // The launcher was closed.
      if (this.#launcher !== launcher) return;
      this.#launcher = undefined;
      this.#cleared = clear(options.mark);
      const error = new Error('The process that starts the processes of tool calls has died.', { cause });
      for (const { reject } of this.#running.values()) reject(error);
    };
    launcher.once('error', gone);
    launcher.once('exit', () => gone());
    launcher.send({ type: 'configure', options } satisfies ToLauncher, () => {});
    return launcher;
  }

  #endWhenUnused(): void {
    if (!this.#isClosed || this.#running.size > 0) return;
    if (this.#launcher?.connected) this.#launcher.disconnect();
    this.#launcher = undefined;
  }
}

function describeDeath({ pid, exitCode, signal }: PreparedDeath): LogFields {
  return { 'process.pid': pid, [ATTRIBUTES.exitCode]: exitCode, signal };
}
