import { type HostBeat, hostBeatSchema, hostKeys } from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';

/** Sessions that wait for a slot. */
export interface WaitingLine {
  /** From 1; undefined for one that does not wait. */
  positionOf(jobId: string): number | undefined;
  /** How long that position may have to wait, ms; undefined while no host can tell. */
  etaOf(position: number): number | undefined;
}

export async function readWaitingLine(producer: Producer): Promise<WaitingLine> {
  const [waiting, beats] = await Promise.all([producer.sessions.waiting(), readBeats(producer)]);
  const positions = new Map(waiting.map((jobId, index) => [jobId, index + 1]));
  return { positionOf: (jobId) => positions.get(jobId), etaOf: (position) => estimateWait(position, beats) };
}

type Slots = Pick<HostBeat, 'slots' | 'free' | 'draining'> & { heldMs?: number | undefined };

/** As if slots went on being given back as often as they lately were. */
export function estimateWait(position: number, hosts: readonly Slots[]): number | undefined {
  const open = hosts.filter(({ draining }) => !draining);
  const free = open.reduce((sum, host) => sum + host.free, 0);
  if (position <= free) return 0;
  const perMs = open.reduce((sum, { slots, heldMs }) => sum + (heldMs ? slots / heldMs : 0), 0);
  return perMs === 0 ? undefined : Math.round((position - free) / perMs);
}

async function readBeats(producer: Producer): Promise<HostBeat[]> {
  const ids = await producer.redis.zrange(producer.fleet.hosts, '0', '-1');
  const texts = await Promise.all(ids.map((id) => producer.redis.get(hostKeys(producer.namespace, id).alive)));
  return texts.flatMap((text) => {
    try {
      return [hostBeatSchema.parse(JSON.parse(text ?? ''))];
    } catch {
      return []; // no longer there
    }
  });
}
