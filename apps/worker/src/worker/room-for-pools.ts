import type { Gate } from '../gate/gate.ts';
import type { PoolRoom } from '../shell/pool/warm-pools.ts';
import type { HostedSessions } from './hosted-sessions.ts';

interface Occupancy {
  slots: number;
  sessions: Pick<HostedSessions, 'size' | 'sandboxes'>;
  gate: Pick<Gate, 'problems' | 'describe'>;
  isDraining: boolean;
  /** Whether the host takes no session for another reason, so that a pool would be of no use yet. */
  takesNone: boolean;
}

/** Returns the room that the sessions of a host leave for sandboxes without a session (WARM-3). */
export function roomForPools({ slots, sessions, gate, isDraining, takesNone }: Occupancy): PoolRoom {
  const isShort = gate.problems().length > 0;
  const { reason, opening } = gate.describe();
  const waits = reason !== null || opening > 0;
  return {
    most: isDraining || isShort ? 0 : Math.max(0, slots - sessions.sandboxes),
    fillTo: waits || isDraining || takesNone ? 0 : Math.max(0, slots - sessions.size),
  };
}
