import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts';
import { runToolProcess, type ToolProcessEnd, type ToolProcessOptions } from './tool-process.ts';

// Processes that were started before their call is known.
//
// PREPARED-1. A process has one call. It ends with that call and is never used again.
// PREPARED-2. No code of a tool's module runs in it before it has a call. It has loaded Node, our own code and zod.
// PREPARED-3. At most one process waits for each slot, and no more than there are processors, which could not start them faster. Slots run calls
//             beside that, so the memory of those that wait comes in addition to the calls'.
// PREPARED-4. A process that ends while it waits costs no call: the call gets a new one.

/** What is fixed when a process starts. Only a call with the same limits can use it. */
export interface ProcessLimits {
  memoryBytes: number;
  dataBytes: number;
}

export interface PreparedOptions {
  slots: number;
  env: Record<string, string>;
  preload: readonly string[];
  /** The beginning of the mark of every process. */
  mark: string;
  /** Is called when a process has died while it waited. */
  onDeath(death: PreparedDeath): void;
}

export interface PreparedDeath {
  pid: number | undefined;
  exitCode: number | null;
  signal: string | null;
}

/** All but one end when they were not used for so long. */
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
  /** How many have died in a row while they waited. */
  #deaths = 0;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PreparedOptions) {
    this.#options = options;
    this.#most = Math.min(options.slots, availableParallelism());
  }

  /** Ids of the processes that wait. */
  get pids(): number[] {
    return this.#waiting.flatMap(({ started }) => started.child.pid ?? []);
  }

  /** Starts a process for a later call, if there is room. */
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

  /** Runs one call in a process that waits, or in a new one. The next one starts meanwhile, and another after the call: calls come faster than processes start. */
  async run(limits: ProcessLimits, options: ToolProcessOptions): Promise<ToolProcessEnd> {
    const end = await this.#runOnce(limits, options);
    this.prepare(limits);
    return end;
  }

  async #runOnce(limits: ProcessLimits, options: ToolProcessOptions): Promise<ToolProcessEnd> {
    const ready = this.#take(limits);
    if (ready === undefined) {
      // Those that wait have other limits.
      const [oldest] = this.#waiting;
      if (oldest !== undefined && this.#waiting.length >= this.#most) this.#end(oldest);
      return this.#runNew(limits, options);
    }
    // The call has its request before the next process is started.
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

  /** Ends the processes that wait. The next call starts a new one. */
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

  /** Without memory for another process, those that run go on. */
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
