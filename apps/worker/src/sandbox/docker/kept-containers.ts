import type { Docker } from '@shellfleet/vendor/dockerode';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';
import type { FoundContainer } from './found-containers.ts';

// Containers that stay for a post-mortem. Their names mark them, so a restarted worker finds them in the engine.
//
// KEPT-1. Nothing runs in a kept container: it is stopped before it counts as kept, and it cannot start again because
//     its keeper is gone. Its mount points stay, because without them the engine does not copy files out of it.
// KEPT-2. A kept container is no session's sandbox: it is not adopted, and no sweep removes it as a leftover.

const PREFIX = '/shellfleet-kept-';

/** Returns when the container was kept (ms, by its host's clock), or undefined when it was not kept. */
export function keptAtOf({ Names: names }: Pick<FoundContainer, 'Names'>): number | undefined {
  const name = names.find((one) => one.startsWith(PREFIX));
  return name === undefined ? undefined : Number(name.slice(PREFIX.length).split('-')[0]);
}

/** Stops, empties and renames a container (KEPT-1). Returns false when it is gone. */
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

/** Returns the containers that are too old, and the oldest of those beyond the number that the host keeps. */
export function beyondBounds<T extends { keptAt: number }>(
  kept: readonly T[],
  { containers, ageMs }: { containers: number; ageMs: number },
  now: number,
): T[] {
  const newestFirst = [...kept].sort((a, b) => b.keptAt - a.keptAt);
  return newestFirst.filter(({ keptAt }, index) => index >= containers || now - keptAt >= ageMs);
}

/** Tells whether the engine replied that the container is stopped already. */
function isStopped(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && error.statusCode === 304;
}
