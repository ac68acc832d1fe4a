import { createHash, randomUUID } from 'node:crypto';
import type { Fleet, Session } from '@shellfleet/client';
import { fromWireError } from '@shellfleet/protocol';
import type { Configurable, ShellSpec, ShellToolMiddlewareOptions } from '../options/shell-tool-options.ts';
import { ShellSessionResources } from './shell-session-resources.ts';

// RUN-1. An agent in a thread always has the session of the same id, so a resumed run finds it, from any process.
// RUN-2. A run without a thread cannot be resumed. Its session ends with the run, with the memory of the run if that
//        ended early, or with this process.

/** Closes the sessions of runs that ended early. It outlives the middleware, which may be gone as well by then. */
const abandoned = new FinalizationRegistry<Session>((session) => void session.close().catch(() => {}));

/** Opens and closes the sessions of a middleware's runs. */
export class RunSessions {
  readonly #fleet: Fleet;
  readonly #spec: ShellSpec;
  readonly #sessionId: (configurable: Configurable) => string | undefined;

  constructor(spec: ShellSpec, toolName: string, { fleet, sessionId }: ShellToolMiddlewareOptions) {
    this.#fleet = fleet;
    this.#spec = spec;
    this.#sessionId = sessionId ?? ((configurable) => threadSessionId(configurable, toolName));
  }

  /** Opens the session of a run. With start-up commands it starts the shell, and closes it when one of them fails. */
  async begin(configurable: Configurable = {}): Promise<ShellSessionResources> {
    const resources = await this.open(configurable);
    if (this.#spec.resolved.startupCommands.length > 0) await startShell(resources.session);
    return resources;
  }

  /** Opens the session of a run, or attaches to it. */
  async open(configurable: Configurable = {}): Promise<ShellSessionResources> {
    const id = this.#sessionId(configurable);
    const { given } = this.#spec;
    if (id !== undefined) return new ShellSessionResources(await this.#fleet.session(id, given));
    const session = await this.#fleet.session(`${ID_PREFIX}${randomUUID()}`, given, { driven: true });
    const resources = new ShellSessionResources(session);
    abandoned.register(resources, session);
    return resources;
  }

  /** Closes the session of a run, whichever process opened it. Does nothing if there is none. */
  async end(resources: ShellSessionResources | undefined, configurable: Configurable = {}): Promise<void> {
    const id = this.#sessionId(configurable);
    const session = resources?.session ?? (id === undefined ? undefined : await this.#fleet.attach(id));
    await session?.close();
  }
}

const ID_PREFIX = 'langchain-shell-';

/**
 * Returns the id for an agent in a thread. Agents within an agent share its thread; the part of the namespace before
 * the current step tells them apart.
 */
function threadSessionId({ thread_id, checkpoint_ns = '' }: Configurable, toolName: string): string | undefined {
  if (thread_id === undefined) return undefined;
  const agent = checkpoint_ns.split('|').slice(0, -1);
  const digest = createHash('sha256')
    .update(JSON.stringify([thread_id, agent, toolName]))
    .digest('hex');
  return `${ID_PREFIX}${digest.slice(0, 32)}`;
}

async function startShell(session: Session): Promise<void> {
  const result = await session.run(':');
  if (result.outcome === 'success') return;
  await session.close();
  throw fromWireError(
    result.error ?? { code: 'SESSION_START_FAILED', message: `The shell ended as ${result.outcome}.`, retryable: true },
  );
}
