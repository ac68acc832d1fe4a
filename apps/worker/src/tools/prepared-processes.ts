import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts';
import { runToolProcess, type ToolProcessEnd, type ToolProcessOptions } from './tool-process.ts';

// Processes that were started before their call is known.
// PREPARED-1. A process serves one call. It ends with that call and is never used again.
// PREPARED-2. Before it has a call, a process has loaded Node, our own code and zod, but no code of a tool's module.
// PREPARED-3. At most one process waits for each slot, and at most one for each processor, as more would not start
//             faster. The waiting processes need memory in addition to that of the running calls.
// PREPARED-4. When a process dies before it has read its request, the call gets a new process.

/** Limits that are fixed when a process starts. Only a call with the same limits can use the process. */
export interface ProcessLimits {
  memoryBytes: number;
  dataBytes: number;
}

export interface PreparedOptions {
  slots: number;
  env: Record<string, string>;
  preload: readonly string[];
  /** Prefix of the marks of all processes. */
  mark: string;
  /** Reports a process that died while it waited for a call. */
  onDeath(death: PreparedDeath): void;
}

export interface PreparedDeath {
  pid: number | undefined;
  exitCode: number | null;
  signal: string | null;
}

/** Time after which all unused processes except one end. */
const IDLE_MS = 60_000;
const NOT_STARTED: PreparedDeath = { pid: undefined, exitCode: 127, signal: null };
const LEAST_PAUSE_MS = 1_000;
const MOST_PAUSE_MS = 60_000;

interface Waiting extends ProcessLimits {
  started: StartedProcess;
  idle: NodeJS.Timeout;
}

export class PreparedProcesses {
  readonly #options: PreparedOptions;
  readonly #most: number;
  #waiting: Waiting[] = [];
  /** Number of processes that died in a row while they waited. */
  #deaths = 0;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PreparedOptions) {
    this.#options = options;
    this.#most = Math.min(options.slots, availableParallelism());
  }

  /** Ids of the waiting processes. */
  get pids(): number[] {
    return this.#waiting.flatMap(({ started }) => started.child.pid ?? []);
  }

  prepare(limits: ProcessLimits): void {
    const isPausing = this.#retry !== undefined;
    if (this.#isClosed || isPausing || this.#waiting.length >= this.#most) return;
    const started = this.#tryToStart(limits);
    if (started === undefined) return;
    const waiting: Waiting = { ...limits, started, idle: this.#endWhenIdle(() => waiting) };
    this.#waiting.push(waiting);
    void waiting.started.exited.then((end) => {
      if (!this.#remove(waiting)) return;
      this.#options.onDeath({ ...end, pid: waiting.started.child.pid });
      this.#prepareLater(limits);
    });
  }

  /** Runs one call. Prepares a process at its start and another at its end, as calls can outpace the starts. */
  async run(limits: ProcessLimits, options: ToolProcessOptions): Promise<ToolProcessEnd> {
    const end = await this.#runOnce(limits, options);
    this.prepare(limits);
    return end;
  }

  async #runOnce(limits: ProcessLimits, options: ToolProcessOptions): Promise<ToolProcessEnd> {
    const ready = this.#take(limits);
    if (ready === undefined) {
      // The waiting processes have other limits. The oldest process makes room.
      const [oldest] = this.#waiting;
      if (oldest !== undefined && this.#waiting.length >= this.#most) this.#end(oldest);
      return this.#runNew(limits, options);
    }
    // The process receives the request of its call before the next process starts.
    const ending = runToolProcess(ready, options);
    this.prepare(limits);
    const end = await ending;
    // PREPARED-4.
    if (end.type === 'died' && !end.begun) return this.#runNew(limits, options);
    this.#deaths = 0;
    return end;
  }

  async #runNew(limits: ProcessLimits, options: ToolProcessOptions): Promise<ToolProcessEnd> {
    const ending = runToolProcess(this.#start(limits), options);
    this.prepare(limits);
    return ending;
  }

  /** Ends the waiting processes. */
  clear(): void {
    for (const waiting of this.#waiting) this.#end(waiting);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.clear();
  }

  #start(limits: ProcessLimits): StartedProcess {
    const { env, mark, preload } = this.#options;
    return startProcess({ ...limits, env, preload, mark: `${mark}${randomUUID()}` });
  }

  /** Returns undefined when there is no memory for another process. Running calls continue. */
  #tryToStart(limits: ProcessLimits): StartedProcess | undefined {
    try {
      return this.#start(limits);
    } catch {
      this.#options.onDeath(NOT_STARTED);
      this.#prepareLater(limits);
      return undefined;
    }
  }

  #take({ memoryBytes, dataBytes }: ProcessLimits): StartedProcess | undefined {
    const found = this.#waiting.find(
      (waiting) => waiting.memoryBytes === memoryBytes && waiting.dataBytes === dataBytes,
    );
    if (found !== undefined) this.#remove(found);
    return found?.started;
  }

  #end(waiting: Waiting): void {
    this.#remove(waiting);
    signalGroup(waiting.started, 'SIGKILL');
    for (const stream of waiting.started.child.stdio) stream?.destroy();
  }

  #remove(waiting: Waiting): boolean {
    clearTimeout(waiting.idle);
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
    return this.#waiting.length < before;
  }

  #endWhenIdle(which: () => Waiting): NodeJS.Timeout {
    const end = () => {
      if (this.#waiting.length > 1) this.#end(which());
    };
    return setTimeout(end, IDLE_MS).unref();
  }

  #prepareLater(limits: ProcessLimits): void {
    const pauseMs = Math.min(MOST_PAUSE_MS, LEAST_PAUSE_MS * 2 ** this.#deaths);
    this.#deaths += 1;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.prepare(limits);
    }, pauseMs).unref();
  }
}
