import { ShellfleetError } from '@shellfleet/protocol';
import type { Engine } from './engine.ts';

/** The engine's container runtimes, read at the worker's start and again when a session names one that was missing. */
export class Runtimes {
  readonly #engine: Engine;
  #known: readonly string[] = [];

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async probe(): Promise<void> {
    const { Runtimes: found } = await this.#engine.call((docker): Promise<{ Runtimes?: object }> => docker.info());
    this.#known = Object.keys(found ?? {}).sort();
  }

  /** Returns the runtimes of a list that the engine did not have when it was last asked. */
  lacking(listed: readonly string[]): string[] {
    return listed.filter((runtime) => !this.#known.includes(runtime));
  }

  /** Throws SANDBOX_UNAVAILABLE for a missing runtime: no session runs in a runtime that it did not ask for. */
  async require(runtime: string | undefined): Promise<void> {
    if (runtime === undefined || this.#known.includes(runtime)) return;
    await this.probe();
    if (this.#known.includes(runtime)) return;
    const issues = [{ path: 'policy.runtime', message: `the engine of this host does not have ${runtime}` }];
    throw new ShellfleetError(
      'SANDBOX_UNAVAILABLE',
      `The Docker engine of this host has no runtime ${runtime}; it has ${this.#known.join(', ')}. Install it and name it in the engine's configuration, or ask for another one.`,
      { issues },
    );
  }
}
