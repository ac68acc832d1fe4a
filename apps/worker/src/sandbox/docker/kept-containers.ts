import type { Docker } from '@shellfleet/vendor/dockerode';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import type { FoundContainer } from './found-containers.ts';

// Containers that stay for a post-mortem. The engine itself has which ones these are, in their names: a worker that starts anew finds them so.
//
// KEPT-1. Nothing runs in a kept container: it is stopped before it counts as kept, and its keeper is gone, without which it does not start. What is
//         mounted in it is there, without which the engine does not copy files out of it.
// KEPT-2. It is no session's sandbox: it is not adopted, and no sweep takes it for a leftover.

const PREFIX = '/shellfleet-kept-';

/** When it was kept (ms, by the clock of its host), if it is. */
export function keptAtOf({ Names: names }: Pick<FoundContainer, 'Names'>): number | undefined {
  const name = names.find((one) => one.startsWith(PREFIX));
  return name === undefined ? undefined : Number(name.slice(PREFIX.length).split('-')[0]);
}

/** KEPT-1. False when the container is gone. */
export async function keepContainer(engine: Engine, id: string, sandboxId: string): Promise<boolean> {
  const name = `${PREFIX.slice(1)}${Date.now()}-${sandboxId}`;
  const stop = (docker: Docker, abortSignal: AbortSignal) => docker.getContainer(id).stop({ t: 0, abortSignal });
  const rename = (docker: Docker, abortSignal: AbortSignal) => docker.getContainer(id).rename({ name, abortSignal });
  try {
    await engine.call(stop).catch((error: unknown) => {
      if (!isStopped(error)) throw error;
    });
    await engine.call(rename);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Those that are beyond the bounds: too old, or more than the host keeps, the oldest first. */
export function beyondBounds<T extends { keptAt: number }>(
  kept: readonly T[],
  { containers, ageMs }: { containers: number; ageMs: number },
  now: number,
): T[] {
  const newestFirst = [...kept].sort((a, b) => b.keptAt - a.keptAt);
  return newestFirst.filter(({ keptAt }, index) => index >= containers || now - keptAt >= ageMs);
}

/** The engine answers so when nothing has to be stopped. */
function isStopped(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && error.statusCode === 304;
}
