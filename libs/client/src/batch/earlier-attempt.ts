import { readGeneration, readIdempotencyKey } from '@shellfleet/mailbox';
import { type ResolvedSessionSpec, type Result, type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { Command } from '../command.ts';
import { parseCommand, type RunOptions } from '../submit/parse-command.ts';
import { digestPayload, keyConflict } from '../submit/send-entry.ts';
import type { FleetView } from '../view.ts';

/** An attempt at a task that an earlier driver began. */
export interface EarlierAttempt {
  /** Whether the session is still open, under this generation. */
  open: boolean;
  generation: string;
  /** The accepted commands of the task, by their idempotency keys. */
  begun: Map<string, { payloadHash: string; entryId: string }>;
}

/** Finds an earlier attempt. Returns undefined if no command with one of the idempotency keys was accepted. */
export async function findEarlierAttempt(
  view: FleetView,
  sessionId: string,
  idempotencyKeys: readonly string[],
): Promise<EarlierAttempt | undefined> {
  const keys = view.keysOf(sessionId);
  const phase = await readGeneration(view.redis, keys);
  if (phase === undefined) return undefined;
  const read = idempotencyKeys.map(async (key) => {
    const found = await readIdempotencyKey(view.redis, keys, key);
    return found === undefined ? [] : [[key, found] as const];
  });
  const begun = new Map((await Promise.all(read)).flat());
  return begun.size === 0 ? undefined : { open: phase.phase === 'open', generation: phase.generation, begun };
}

/**
 * Returns the Result of a command of an earlier attempt without opening its session again. Returns undefined for a
 * command that was not accepted. Throws IDEMPOTENCY_CONFLICT for a command that has changed.
 */
export async function readEarlierResult(
  view: FleetView,
  sessionId: string,
  { begun }: EarlierAttempt,
  command: { key: string; script: string },
  { spec, signal, ...options }: RunOptions & { spec?: SessionSpec | undefined },
): Promise<Result | undefined> {
  const found = begun.get(command.key);
  if (found === undefined) return undefined;
  const keys = view.keysOf(sessionId);
  const resolved: ResolvedSessionSpec = sessionSpecSchema.parse(spec ?? {});
  const { payload } = parseCommand(command.script, options, resolved);
  if (digestPayload(view.sealer, payload) !== found.payloadHash) throw keyConflict(sessionId, found.entryId);
  const pending = view.pending.expect(keys, found.entryId);
  pending.accepted = true;
  const known = new Command(view, pending, { deduplicated: true, foreign: true });
  return known.result(signal === undefined ? {} : { signal });
}
