import { StateSchema, UntrackedValue } from '@langchain/langgraph';
import type { Session } from '@shellfleet/client';
import { z } from 'zod';

/**
 * The session of a run, in the state of its agent. It has no field that a checkpointer could store: LangGraph writes
 * the whole state into the pending calls of a checkpoint, untracked values too.
 */
export class ShellSessionResources {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  get session(): Session {
    return this.#session;
  }
}

/**
 * State of the middleware. The leading underscore makes a slot private in LangChain.js: it is in neither the input nor
 * the output of an agent. The slot is also a schema of zod, because LangChain.js calls methods on the slots of a
 * middleware that an UntrackedValue lacks.
 */
export const shellStateSchema = new StateSchema({
  _shell_session_resources: Object.assign(
    z.custom<ShellSessionResources>().optional(),
    new UntrackedValue(undefined, { guard: false }),
  ),
});

/**
 * Returns the resources in a state. After a resumption the slot is empty, or holds the empty object that the
 * checkpointer stored.
 */
export function resourcesIn(state: unknown): ShellSessionResources | undefined {
  const { _shell_session_resources: held } = (state ?? {}) as { _shell_session_resources?: unknown };
  return held instanceof ShellSessionResources ? held : undefined;
}
