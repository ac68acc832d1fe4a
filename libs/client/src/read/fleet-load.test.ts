import type { SessionsLine } from '@shellfleet/placement';
import { type HostBeat, hostBeatSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { sumByTenant, toReasons } from './fleet-load.ts';

const CLASS = 'docker~1.key';
const GATE = {
  ...{ refusal: null, opening: 0, freeMemoryBytes: 0, freeDiskBytes: 0, memoryPressure: 0, ioPressure: 0 },
  ...{ leastMemoryBytes: 0, sessionBytes: 0, ranOutAt: null },
};
const beat = (more: Partial<HostBeat> = {}): HostBeat =>
  hostBeatSchema.parse({
    ...{ slots: 4, free: 0, policies: ['docker'], version: '1', boot: 'b', sealKeys: ['key'], schema: 1 },
    ...{ draining: false, defaultImage: 'default', ...more },
  });
const line = (more: Partial<SessionsLine> = {}): SessionsLine => ({
  ...{ tenant: 'a', placementClass: CLASS, held: 4, waiting: 3 },
  ...more,
});

describe('the reason why sessions wait', () => {
  test.each([
    ['no host', {}, [], 'No host of this fleet is up. Start one'],
    ['the policy', { placementClass: 'host~1.key' }, [beat()], "No live host offers the policy 'host'"],
    ['a label', { placementClass: 'docker,gpu=yes~1.key' }, [beat()], 'has the label gpu=yes'],
    ['a network', { placementClass: 'docker+full~1.key' }, [beat()], "does not allow 'full'; it allows 'restricted'"],
    ['the quota of their tenant', { held: 5 }, [beat({ free: 1 })], 'Their tenant has as many sessions'],
    ['slots', {}, [beat(), beat()], 'All slots are taken.'],
    ['a shortage', {}, [beat({ free: 1, problems: ['Its disk is full.'] })], 'takes sessions now: Its disk is full.'],
    ['the last eighth', { held: 4 }, [beat({ slots: 8, free: 1 })], 'The last eighth of the slots is for tenants'],
    ['a closed gate', {}, [beat(), beat({ free: 2, gate: { ...GATE, reason: 'A crowd.' } })], 'A crowd.'],
    [
      'none, with a free slot behind an open gate',
      {},
      [beat({ free: 2, gate: { ...GATE, reason: 'A crowd.' } }), beat({ free: 1 })],
      'No host has taken them yet.',
    ],
  ])('is %s', (_what, of: Partial<SessionsLine>, beats, reason) => {
    const lines = [line(of)];
    expect(toReasons({ lines, beats, loads: sumByTenant(lines), quotas: new Map([['a', 5]]) }, [])).toEqual([
      { reason: expect.stringContaining(reason), sessions: 3 },
    ]);
  });

  test('is counted over tenants and classes, with approvals, the most frequent first', () => {
    const lines = [line(), line({ tenant: 'b', waiting: 1 }), line({ tenant: 'c', waiting: 0 })];
    const waiting = { lines, beats: [beat()], loads: sumByTenant(lines), quotas: new Map() };
    expect(toReasons(waiting, [{ held: 4 }, {}, { held: 1 }])).toEqual([
      { reason: 'Their next command waits for an approval.', sessions: 5 },
      { reason: 'All slots are taken.', sessions: 4 },
    ]);
  });
});

test('the load of tenants is summed over classes, without tenants that have no session', () => {
  const lines = [
    line(),
    line({ placementClass: 'host~1.key', held: 1 }),
    line({ tenant: 'noted', held: 0, waiting: 0 }),
  ];
  expect([...sumByTenant(lines).values()]).toEqual([{ tenant: 'a', held: 5, waiting: 6 }]);
});
