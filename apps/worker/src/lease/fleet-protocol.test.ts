import { fleetKeys, hostKeys, PROTOCOL_VERSION } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { refuseOtherProtocol } from './fleet-protocol.ts';

const fleet = fleetKeys('ns');

function fakeRedis(beats: Record<string, string | null>): Redis {
  const byKey = new Map(Object.entries(beats).map(([id, beat]) => [hostKeys('ns', id).alive, beat]));
  return { zrange: async () => Object.keys(beats), get: async (key: string) => byKey.get(key) ?? null } as never;
}

test.each([
  ['a live host of the same version', { other: `{"protocol":${PROTOCOL_VERSION}}` }],
  ['a host whose heartbeat has expired', { other: null }],
  ["its own earlier process's heartbeat", { own: '{"protocol":7}' }],
])('accepts %s', async (_who, beats) => {
  await refuseOtherProtocol(fakeRedis(beats as never), fleet, 'own');
});

test('refuses to start beside a live host of another version, whatever else its heartbeat holds', async () => {
  await expect(refuseOtherProtocol(fakeRedis({ other: '{"protocol":7}' }), fleet, 'own')).rejects.toMatchObject({
    code: 'PROTOCOL_MISMATCH',
    context: { hostId: 'other', theirs: 7, ours: PROTOCOL_VERSION },
  });
});
