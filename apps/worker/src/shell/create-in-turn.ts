import { abortable } from '@shellfleet/concurrency';
import { SPANS } from '@shellfleet/protocol';
import { MissingImage, type Sandbox, type SandboxImage } from '../sandbox/sandbox.ts';
import { traceStep } from '../tracing/session-traces.ts';
import type { Interval } from './opening.ts';
import type { SessionShellDeps } from './session-shell-deps.ts';

/** Most pulls for one opening. A new image may be removed again before it is used. */
const MOST_PULLS = 3;

type CreateDeps = Pick<SessionShellDeps, 'ref' | 'spec' | 'sandboxes' | 'limitOpening' | 'traces' | 'movable'>;

export interface Creation {
  /** Image of the session's last sandbox. */
  image: SandboxImage | undefined;
  signal: AbortSignal;
  /** Connects to the new sandbox, which still counts as opening meanwhile. */
  connect(sandbox: Sandbox): Promise<void>;
  /** Reports a pull that has ended, by the clock of this host. */
  onPulled(pull: Interval): void;
}

/**
 * Creates the sandbox of a session when its turn has come, and connects to it. An image that is missing is pulled
 * first. Queueing does not use up startupTimeoutMs, which begins with the start of the container.
 */
export async function createInTurn(deps: CreateDeps, creation: Creation): Promise<void> {
  for (let pulls = 0; ; pulls++) {
    try {
      return await create(deps, creation);
    } catch (error) {
      if (!(error instanceof MissingImage) || pulls === MOST_PULLS) throw error;
      // Outside the limit, so that a slow registry delays no other session.
      const from = Date.now();
      const pull = () => deps.sandboxes.pull(error.image, creation.signal);
      await traceStep(deps.traces, SPANS.pullImage, pull).finally(() => creation.onPulled({ from, to: Date.now() }));
    }
  }
}

/** The turns of Pods may never come, so an abort ends the wait for one. */
async function create(deps: CreateDeps, creation: Creation): Promise<void> {
  const turn = Promise.withResolvers<void>();
  const opening = deps.limitOpening(deps.spec.policy.type, () => {
    turn.resolve();
    return createNow(deps, creation);
  });
  if (deps.movable !== undefined) {
    // After an abort, the opening fails when its turn comes, and nobody waits for it.
    opening.catch(() => {});
    await abortable(turn.promise, creation.signal);
  }
  return opening;
}

async function createNow(deps: CreateDeps, { image, signal, connect }: Creation): Promise<void> {
  signal.throwIfAborted();
  const { ref, spec, sandboxes, traces } = deps;
  const createSandbox = () => sandboxes.create(ref, spec, { signal, image });
  await connect(await traceStep(traces, SPANS.createSandbox, createSandbox));
}
