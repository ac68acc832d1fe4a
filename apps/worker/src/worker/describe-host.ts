import type { HostBeat } from '@shellfleet/protocol';
import type { SessionHost } from '../run/host-services.ts';
import type { HostedSessions } from './hosted-sessions.ts';

/** Returns the part of a heartbeat that describes settings and sessions. */
export function describeHost({ settings, boot, version, hostEntries }: SessionHost, sessions: HostedSessions) {
  const { slots, defaultImage, retentionMs } = settings;
  return {
    ...{ slots, free: Math.max(0, slots - sessions.size), sessions: sessions.size, held: sessions.asking },
    ...{ running: hostEntries.count, version, boot, defaultImage, retentionMs },
  } satisfies Partial<HostBeat>;
}
