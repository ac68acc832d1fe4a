import { encodeStoredChunk, type StoredChunk } from '@shellfleet/protocol';
import { asArray, asNumber, type ScriptArgument } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/append');

export type Appended =
  | { type: 'stored'; offsets: { stdout: number; stderr: number } }
  /** The chunks do not begin at the stored `offsets`: the call arrived twice, or output is missing. */
  | { type: 'misplaced'; offsets: { stdout: number; stderr: number } }
  | { type: 'not-running' };

/** Adds all chunks of the running entry's output to the stream, or none. `whenFull`: also when Redis is full. */
export async function append(
  owner: Owner,
  entryId: string,
  entries: readonly StoredChunk[],
  { whenFull = false }: { whenFull?: boolean } = {},
): Promise<Appended | Fenced> {
  const args = [owner.fence, owner.host, entryId, whenFull ? '1' : '0', ...toOutputArguments(entries)];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'not-running' };
  const offsets = { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) };
  return { type: reply[0] === 1 ? 'stored' : 'misplaced', offsets };
}

/** Output entries as the scripts take them: stream, seq, raw from, raw to, entry. */
export function toOutputArguments(entries: readonly StoredChunk[]): ScriptArgument[] {
  return entries.flatMap((entry) => [
    entry.stream === 'stdout' ? 1 : 2,
    entry.seq,
    entry.rawFrom,
    entry.rawTo,
    Buffer.from(encodeStoredChunk(entry)),
  ]);
}
