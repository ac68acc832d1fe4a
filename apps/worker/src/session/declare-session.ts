import { toPlacementJson } from '@shellfleet/placement';
import type { Redis } from 'ioredis';
import type { EntryRun } from '../run/entry-run.ts';
import type { SessionParts } from './session-parts.ts';

/** Restores what this host has of a session, and the entry that runs, in a Redis that came back with other data. */
export function declareSession(
  { context, shell, adopted, job, placement }: SessionParts,
  run: EntryRun | undefined,
  redis: Redis,
): Promise<void> {
  return context.mailbox.declare(redis, {
    ...{ generation: context.generation, spec: adopted.spec, createdAt: adopted.createdAt, driven: adopted.driven },
    ...{ placementClass: job.placementClass, placement: toPlacementJson(placement) },
    ...{ epoch: shell.epoch, epochBase: shell.epochBase, sandbox: shell.ready ? shell.sandbox?.id : undefined },
    running: run && { entry: run.entry, stored: run.stored },
  });
}
