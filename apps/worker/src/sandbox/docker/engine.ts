import { setTimeout as delay } from 'node:timers/promises';
import { abortable } from '@shellfleet/concurrency';
import { ShellfleetError } from '@shellfleet/protocol';
import { type Docker, loadDockerode } from '@shellfleet/vendor/dockerode';
import type { Logger } from '../../log/logger.ts';
import { isEngineReply } from './docker-errors.ts';

// Calls the Docker engine with deadlines and a circuit breaker.
//
// ENGINE-1. Every call ends: with the engine's reply, or at its deadline.
// ENGINE-2. After several calls in a row without a reply, calls fail at once, until a probe gets a reply.

const Dockerode = loadDockerode();

const CALL_TIMEOUT_MS = 30_000;
const FAILURES_TO_OPEN = 4;
const PROBE_INTERVAL_MS = 2_000;
const PROBE_TIMEOUT_MS = 5_000;

export interface EngineTimes {
  callTimeoutMs?: number;
  failuresToOpen?: number;
  probeIntervalMs?: number;
}

export class Engine {
  readonly docker: Docker;
  readonly #times: Required<EngineTimes>;
  readonly #logger: Logger | undefined;
  readonly #closing = new AbortController();
  #failures = 0;
  #problem: string | undefined;
  #probing: Promise<void> | undefined;

  constructor(socketPath: string, logger?: Logger, times: EngineTimes = {}) {
    this.docker = new Dockerode({ socketPath });
    this.#logger = logger;
    const { callTimeoutMs = CALL_TIMEOUT_MS, failuresToOpen = FAILURES_TO_OPEN } = times;
    this.#times = { callTimeoutMs, failuresToOpen, probeIntervalMs: times.probeIntervalMs ?? PROBE_INTERVAL_MS };
  }

  /** Reason why no call is made at present, as a sentence; undefined while the engine replies. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Makes one call. Rejects with the engine's error, the error that ended the connection, or at the deadline. */
  async call<T>(
    call: (docker: Docker, abortSignal: AbortSignal) => Promise<T>,
    timeoutMs = this.#times.callTimeoutMs,
  ): Promise<T> {
    if (this.#problem !== undefined) throw new ShellfleetError('DOCKER_UNAVAILABLE', this.#problem);
    try {
      const answer = await this.#within(timeoutMs, call);
      this.#failures = 0;
      return answer;
    } catch (error) {
      this.#record(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#probing;
  }

  async #within<T>(timeoutMs: number, call: (docker: Docker, abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`it took longer than ${timeoutMs} ms`)), timeoutMs);
    try {
      return await abortable(call(this.docker, late.signal), late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  #record(error: unknown): void {
    if (isEngineReply(error)) {
      this.#failures = 0;
      return;
    }
    this.#failures += 1;
    if (this.#failures < this.#times.failuresToOpen || this.#problem !== undefined) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#problem = `The Docker engine has not answered ${this.#failures} calls in a row (${reason}).`;
    this.#logger?.error({ problem: this.#problem }, 'engine.unavailable');
    this.#probing = this.#probeUntilAnswered();
  }

  async #probeUntilAnswered(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await delay(this.#times.probeIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      const answered = await this.#within(PROBE_TIMEOUT_MS, (docker) => docker.ping()).then(
        () => true,
        (error: unknown) => isEngineReply(error),
      );
      if (!answered) continue;
      this.#failures = 0;
      this.#problem = undefined;
      this.#logger?.info('engine.recovered');
      return;
    }
  }
}
