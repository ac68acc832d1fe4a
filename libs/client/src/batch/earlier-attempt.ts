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
  /** The accepted scripts, which are the first scripts of the task. */
  begun: { payloadHash: string; entryId: string }[];
}

/** Idempotency key of a task's script. Each attempt at a task has its own session, so the key is unique there. */
export const stepKey = (index: number) => `script-${index + 1}`;

/** Finds an earlier attempt. Returns undefined if no script of it was accepted. */
export async function findEarlierAttempt(
  view: FleetView,
  sessionId: string,
  scripts: number,
): Promise<EarlierAttempt | undefined> {
  const keys = view.keysOf(sessionId);
  const phase = await readGeneration(view.redis, keys);
  if (phase === undefined) return undefined;
  const indexes = Array.from({ length: scripts }, (_, index) => index);
  const found = await Promise.all(indexes.map((index) => readIdempotencyKey(view.redis, keys, stepKey(index))));
  const begun = found.flatMap((one) => one ?? []);
  return begun.length === 0 ? undefined : { open: phase.phase === 'open', generation: phase.generation, begun };
}

/** Returns the Results of the accepted scripts, up to the first failure, without opening the session again. */
export async function readEarlierResults(
  view: FleetView,
  sessionId: string,
  { begun }: EarlierAttempt,
  scripts: readonly string[],
  options: RunOptions & { spec?: SessionSpec | undefined },
): Promise<Result[]> {
  const keys = view.keysOf(sessionId);
  const { spec, signal, ...rest } = options;
  const resolved: ResolvedSessionSpec = sessionSpecSchema.parse(spec ?? {});
  const results: Result[] = [];
  for (const [index, { payloadHash, entryId }] of begun.entries()) {
    const { payload } = parseCommand(scripts[index], rest, resolved);
    if (digestPayload(view.sealer, payload) !== payloadHash) throw keyConflict(sessionId, entryId);
    const pending = view.pending.expect(keys, entryId);
    pending.accepted = true;
    const command = new Command(view, pending, { deduplicated: true, foreign: true });
    const result = await command.result(signal === undefined ? {} : { signal });
    results.push(result);
    if (result.outcome !== 'success') break;
  }
  return results;
}
