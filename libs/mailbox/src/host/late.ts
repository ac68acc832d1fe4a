import type { StoredChunk } from '@shellfleet/protocol';
import { asArray, asNumber, asString } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { toOutputArguments } from './append.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/late');

/** Position at which an entry's late output continues, and its bytes in the stream. */
export interface LatePosition {
  offsets: { stdout: number; stderr: number };
  seq: number;
  carriedBytes: number;
  /** Outcome of the entry, or `blocked` once a rule has withheld late output. */
  outcome: string;
}

export type LateAdded =
  | { type: 'stored'; position: LatePosition }
  /** The chunks do not begin at `position`: the call arrived twice, or output is missing. */
  | { type: 'misplaced'; position: LatePosition }
  | { type: 'not-ended' }
  /** The entry has no record, for example because it has expired. */
  | { type: 'unknown' };

/** Adds late output of an ended entry to the stream. Without any, only returns the position. */
export async function addLate(
  owner: Owner,
  entryId: string,
  entries: readonly StoredChunk[],
): Promise<LateAdded | Fenced> {
  const withheld = entries.some(({ blocked }) => blocked !== undefined) ? '1' : '';
  const args = [owner.fence, owner.host, entryId, withheld, ...toOutputArguments(entries)];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'not-ended' };
  if (reply[0] === -3) return { type: 'unknown' };
  const position = {
    offsets: { stdout: asNumber(reply[1]), stderr: asNumber(reply[2]) },
    seq: asNumber(reply[3]),
    carriedBytes: asNumber(reply[4]),
    outcome: asString(reply[5]),
  };
  return { type: reply[0] === 1 ? 'stored' : 'misplaced', position };
}
