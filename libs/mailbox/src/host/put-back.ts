import { fieldsOf, type OutputEntry, toWireResult, type WireResult } from '@shellfleet/protocol';
import { asArray, asNumber } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { toOutputArguments } from './append.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/put-back');

/** First attempt of an entry that is to have a second one. */
export interface AttemptToRepeat {
  /** Sealed description for the person who is asked. */
  sealed: string;
  /** Result of the entry if there is no second attempt. */
  result: Extract<WireResult, { outcome: 'failure' }>;
  /** output that was not appended yet */
  output: readonly OutputEntry[];
}

/**
 * Ends the first attempt of the running entry and makes the entry the head again. `refused`: it was cancelled, has an
 * open stdin or does not run, or its generation is ending.
 */
export async function putBack(
  owner: Owner,
  entryId: string,
  { sealed, result, output }: AttemptToRepeat,
): Promise<
  | { type: 'put-back' }
  | { type: 'refused' }
  | { type: 'misplaced'; offsets: { stdout: number; stderr: number } }
  | Fenced
> {
  const wire = toWireResult(result);
  const end = { outcome: wire.outcome, exitCode: result.exitCode, reason: result.reason };
  const args = [sealed, JSON.stringify(end), JSON.stringify(fieldsOf(wire)), ...toOutputArguments(output)];
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, entryId, ...args]),
    script.name,
  );
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -5)
    return { type: 'misplaced', offsets: { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) } };
  return { type: reply[0] === 1 ? 'put-back' : 'refused' };
}
