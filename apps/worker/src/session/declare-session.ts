import type { Redis } from 'ioredis';
import type { EntryRun } from '../run/entry-run.ts';
import type { SessionParts } from './session-parts.ts';

/**
 * Redis came back with other data: restores there what this host has in memory of a session, over a connection that takes no other call yet.
 * `run`: the entry that runs. Entries that ended here are in the journal, which is asked when Redis hands them out again.
 */
export function declareSession(
  { context, shell, adopted, job, placement }: SessionParts,
  run: EntryRun | undefined,
  redis: Redis,
): Promise<void> {
  return context.mailbox.declare(redis, {
    ...{ generation: context.generation, spec: adopted.spec, createdAt: adopted.createdAt, driven: adopted.driven },
    ...{ placementClass: job.placementClass, placement: JSON.stringify(placement) },
    ...{ epoch: shell.epoch, epochBase: shell.epochBase, sandbox: shell.ready ? shell.sandboxId : undefined },
    running: run && { entry: run.entry, stored: run.stored },
  });
}
