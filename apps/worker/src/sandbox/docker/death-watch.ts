import { setTimeout as sleep } from 'node:timers/promises';
import { tryJson } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { z } from 'zod';
import { engineReportsLimitsOnly, type HostMemory } from '../../host/host-memory.ts';
import type { SandboxDeath } from '../sandbox.ts';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';

// Reports how containers of this host end, from one stream of the engine's events.
//
// DEATH-1. Each death is reported once. An inspection at the opening of a stream finds deaths that happened while none
//     was open.
// DEATH-2. An engine that does not reply is not a death: with live-restore its containers continue.

const KILLED_EXIT_CODE = 137;
/** Longest delay of the events `oom` and `destroy` after the death. */
const SETTLE_MS = 300;
const SETTLE_STEP_MS = 20;
const OOM_WINDOW_MS = 5_000;
const LEAST_RETRY_MS = 100;
const MOST_RETRY_MS = 2_000;
const MOST_EVENT_LINE = 1024 * 1024;

const eventSchema = z.object({
  Action: z.string(),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()).optional() }),
});

interface Watched {
  death: Promise<SandboxDeath>;
  tell: (death: SandboxDeath) => void;
  oomAt?: number;
  isKilled?: boolean;
  isDestroyed?: boolean;
  isSettling?: boolean;
}

export class DeathWatch {
  readonly #engine: Engine;
  readonly #labels: string[];
  readonly #hostMemory: Pick<HostMemory, 'hasRunOut'> | undefined;
  readonly #watched = new Map<string, Watched>();
  readonly #closing = new AbortController();
  #loop: Promise<void> | undefined;

  /** Without `hostMemory`, no death is one for the memory of the whole host. */
  constructor(engine: Engine, labels: string[], hostMemory?: Pick<HostMemory, 'hasRunOut'>) {
    this.#engine = engine;
    this.#labels = labels;
    this.#hostMemory = hostMemory;
  }

  /** Resolves when the running container has ended. */
  watch(containerId: string): Promise<SandboxDeath> {
    const known = this.#watched.get(containerId);
    if (known) return known.death;
    const { promise, resolve } = Promise.withResolvers<SandboxDeath>();
    const tell = (death: SandboxDeath) => {
      if (this.#watched.delete(containerId)) resolve(death);
    };
    this.#watched.set(containerId, { death: promise, tell });
    this.#loop ??= this.#follow();
    return promise;
  }

  /** Inspects a container that may have ended before its events were watched. */
  async inspect(containerId: string): Promise<void> {
    const watched = this.#watched.get(containerId);
    if (!watched) return;
    const state = await this.#stateOf(containerId);
    if (state === 'gone') watched.tell({ reason: 'removed', exitCode: null });
    else if (!state.Running && state.Status !== 'created') await this.#settle(containerId, watched, state.ExitCode);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
  }

  async #follow(): Promise<void> {
    let retryMs = LEAST_RETRY_MS;
    while (!this.#closing.signal.aborted) {
      try {
        const stream = await this.#openEvents();
        await Promise.all([...this.#watched.keys()].map((containerId) => this.inspect(containerId)));
        retryMs = LEAST_RETRY_MS;
        await this.#read(stream);
      } catch {
        // The engine does not reply: DEATH-2.
      }
      await sleep(retryMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, MOST_RETRY_MS);
    }
  }

  /** Opens the stream of events. The deadline applies to its opening only. */
  #openEvents(): Promise<NodeJS.ReadableStream> {
    return this.#engine.call((docker, late) =>
      docker.getEvents({
        filters: { type: ['container'], event: ['die', 'oom', 'kill', 'destroy'], label: this.#labels },
        abortSignal: AbortSignal.any([this.#closing.signal, late]),
      }),
    );
  }

  async #read(stream: NodeJS.ReadableStream): Promise<void> {
    let rest = '';
    for await (const chunk of stream) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MOST_EVENT_LINE) throw new Error('the engine sent an event without an end');
      for (const line of lines) this.#accept(line);
    }
  }

  #accept(line: string): void {
    const event = eventSchema.safeParse(tryJson(line)).data;
    const watched = event && this.#watched.get(event.Actor.ID);
    if (!watched) return;
    if (event.Action === 'oom') watched.oomAt = Date.now();
    if (event.Action === 'kill') watched.isKilled = true;
    if (event.Action === 'destroy') watched.isDestroyed = true;
    if (event.Action === 'destroy' || event.Action === 'die') {
      const exitCode = Number(event.Actor.Attributes?.exitCode ?? Number.NaN);
      void this.#settle(event.Actor.ID, watched, Number.isNaN(exitCode) ? null : exitCode);
    }
  }

  /** Waits for the other events of a death, then reports it. */
  async #settle(containerId: string, watched: Watched, exitCode: number | null): Promise<void> {
    if (watched.isSettling) return;
    watched.isSettling = true;
    if (exitCode !== null && exitCode !== KILLED_EXIT_CODE) return watched.tell({ reason: 'exited', exitCode });
    for (
      let waited = 0;
      waited < SETTLE_MS && !watched.isDestroyed && !isRecent(watched.oomAt);
      waited += SETTLE_STEP_MS
    ) {
      await sleep(SETTLE_STEP_MS);
    }
    watched.tell({ reason: await this.#reasonOf(containerId, watched), exitCode });
  }

  async #reasonOf(containerId: string, watched: Watched): Promise<SandboxDeath['reason']> {
    if (isRecent(watched.oomAt)) return this.#reasonByMemory(true);
    if (watched.isDestroyed) return 'removed';
    const state = await this.#stateOf(containerId).catch(() => undefined);
    if (state === 'gone' || state?.Status === 'removing' || state?.Dead) return 'removed';
    return watched.isKilled ? 'killed' : this.#reasonByMemory(state?.OOMKilled === true);
  }

  /** Returns the reason of a death that nobody asked for. `isReported`: the engine calls it out of memory. */
  async #reasonByMemory(isReported: boolean): Promise<SandboxDeath['reason']> {
    if (isReported && engineReportsLimitsOnly()) return 'oom';
    if (await this.#hostMemory?.hasRunOut()) return 'host-memory';
    return isReported ? 'oom' : 'killed';
  }

  async #stateOf(containerId: string): Promise<Docker.ContainerInspectInfo['State'] | 'gone'> {
    try {
      return (
        await this.#engine.call((docker, abortSignal) => docker.getContainer(containerId).inspect({ abortSignal }))
      ).State;
    } catch (error) {
      if (isNotFound(error)) return 'gone';
      throw error;
    }
  }
}

function isRecent(at: number | undefined): boolean {
  return at !== undefined && Date.now() - at < OOM_WINDOW_MS;
}
