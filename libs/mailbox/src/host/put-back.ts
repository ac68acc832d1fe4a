import { fieldsOf, type StoredChunk, toStoredOutput, type WireResult } from '@shellfleet/protocol';
import { asArray, asNumber } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { toOutputArguments } from './append.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/put-back');

export interface AttemptToRepeat {
  /** Sealed description for the person who is asked. */
  sealed: string;
  /** Result of the entry if there is no second attempt. */
  result: Extract<WireResult, { outcome: 'failure' }>;
  output: readonly StoredChunk[];
}

/** Makes the running entry the head again after its first attempt, unless it was cancelled or has an open stdin. */
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
  const { outcome, exitCode, reason } = result;
  const rest = fieldsOf({ ...result, output: toStoredOutput(result) });
  const args = [
    sealed,
    JSON.stringify({ outcome, exitCode, reason }),
    JSON.stringify(rest),
    ...toOutputArguments(output),
  ];
  const reply = asArray(
    await runOnSession(owner.redis, script, owner.keys, [owner.fence, owner.host, entryId, ...args]),
    script.name,
  );
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -5)
    return { type: 'misplaced', offsets: { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) } };
  return { type: reply[0] === 1 ? 'put-back' : 'refused' };
}
