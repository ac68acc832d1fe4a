import { asArray, asNumber, asString } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/input');

interface InputPosition {
  /** Number of bytes that the shell has received. This call deletes them. */
  taken: number;
  /** Offset to read from. The first chunk may begin before it. */
  from: number;
  /** Size after which reading stops. At least one chunk is read. */
  mostBytes: number;
}

export type InputRead =
  | {
      type: 'read';
      written: number;
      closed?: 'end' | 'broken';
      signed: string;
      /** Time since the streaming submitter's lease expired. 0 after the end, and for a stdin that is not streamed. */
      lapsedMs: number;
      /** Sealed chunks, with their end offsets. The length of a chunk is unknown until it is opened. */
      chunks: { end: number; sealed: string }[];
    }
  | { type: 'not-running' };

/** Reads the next part of the running entry's open stdin, and deletes the received part. */
export async function readInput(
  owner: Owner,
  entryId: string,
  { taken, from, mostBytes }: InputPosition,
): Promise<InputRead | Fenced> {
  const args = [owner.fence, owner.host, entryId, taken, from, mostBytes];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  if (reply[0] === -1) return FENCED;
  if (reply[0] === -2) return { type: 'not-running' };
  const closed = asString(reply[2]);
  const found = asArray(reply[4], script.name);
  const chunks = Array.from({ length: found.length / 2 }, (_, index) => ({
    end: asNumber(found[2 * index]),
    sealed: asString(found[2 * index + 1]),
  }));
  return {
    type: 'read',
    written: asNumber(reply[1]),
    ...(closed === 'end' || closed === 'broken' ? { closed } : {}),
    lapsedMs: asNumber(reply[3]),
    signed: asString(reply[5]),
    chunks,
  };
}
