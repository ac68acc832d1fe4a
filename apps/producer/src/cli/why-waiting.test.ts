import type { SessionInfo } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { whyWaiting, whyWaitingInShort } from './why-waiting.ts';

const INFO: SessionInfo = {
  ...{ id: 's', state: 'queued', hostId: null, epoch: 0, queuedCommands: 1, background: [], labels: {} },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', lastActiveAt: '2026-01-01T00:00:00.000Z' },
};
const REFUSED = "None of the 2 live hosts that offer the policy 'docker' runs what the session asks for";
const DETAILS = 'user: this host does not allow root. Ask for less, or have the operator of a host allow it.';

describe('the reason of a wait', () => {
  test.each<[string, Partial<SessionInfo>, string, string]>([
    ['a person', { heldCommandId: 's.1', position: 1 }, 's.1 waits for an approval', 'a person is asked'],
    ['no host', { noHostReason: `${REFUSED}. ${DETAILS}`, position: 1 }, `${REFUSED}. ${DETAILS}`, REFUSED],
    [
      'draining hosts',
      { noHostReason: 'Every host is draining.' },
      'Every host is draining.',
      'Every host is draining',
    ],
    ['its host', { state: 'unreachable', hostId: 'h1' }, 'its host h1 does not answer', 'its host does not answer'],
    [
      'the quota of its tenant',
      { position: 1, atQuota: { quota: 'maxSessions', used: 40, limit: 40 } },
      'tenant has 40 of 40 sessions',
      'tenant has 40 of 40 sessions',
    ],
    [
      'a node of its cluster',
      { state: 'starting', hostId: 'h1', waitsFor: 'Unschedulable: 0/3 nodes are available: 3 cpu. preemption: 0/3' },
      'its Pod waits: Unschedulable: 0/3 nodes are available: 3 cpu. preemption: 0/3',
      'its Pod waits: Unschedulable: 0/3 nodes are available: 3 cpu',
    ],
    ['slots', { position: 2 }, 'all slots are taken', 'all slots are taken'],
    ['another command', { state: 'busy', hostId: 'h1' }, 'another command runs in it', 'another command runs in it'],
    ['nothing', { state: 'ready', hostId: 'h1' }, '-', '-'],
    ['nothing, while its last command runs', { state: 'busy', queuedCommands: 0 }, 'another command runs in it', '-'],
  ])('has a long and a short form for a session that waits for %s', (_what, given, whole, short) => {
    const info = { ...INFO, ...given };
    expect([whyWaiting(info), whyWaitingInShort(info)]).toEqual([whole, short]);
  });
});
