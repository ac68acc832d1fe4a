import type { FleetLoad, HostInfo } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { drawLoad, shareRows } from './draw-load.ts';

const GATE = {
  refusal: null,
  opening: 0,
  freeMemoryBytes: 3e9,
  freeDiskBytes: 0,
  memoryPressure: 1.5,
  ioPressure: null,
  ...{ leastMemoryBytes: 0, sessionBytes: 0, ranOutAt: null },
};
const HOST: HostInfo = {
  ...{ id: 'h1', state: 'up', slots: 40, free: 12, sessions: 28, running: 7, commandsPerSecond: 41.25 },
  ...{ policies: ['docker'], version: '1', configuration: 0, seenAt: '2026-01-01T00:00:00.000Z' },
};
const LOAD: FleetLoad = {
  at: '2026-01-01T12:00:05.000Z',
  hosts: [
    { ...HOST, gate: { ...GATE, reason: null } },
    { ...HOST, id: 'h2', gate: { ...GATE, reason: 'Its memory is \u001b[31mshort.' } },
    { ...HOST, id: 'h3', state: 'unreachable' },
  ],
  tenants: [
    { tenant: 'ci', held: 4, waiting: 12 },
    { tenant: 'default', held: 52, waiting: 0 },
  ],
  sessions: { held: 56, running: 14, waiting: 12 },
  commandsPerSecond: 82.5,
  waiting: [{ reason: 'All slots are taken.', sessions: 12 }],
};
const texts = (width: number, height = 100) => drawLoad(LOAD, { height, width }).map(({ text }) => text);

describe('the load of a fleet', () => {
  test('is drawn as a summary, hosts, tenants and reasons', () => {
    expect(texts(200)).toEqual([
      '12:00:05Z  hosts: 2 up, 1 unreachable  82.5 commands/s',
      'sessions: 56 hold a slot, 14 run a command, 12 wait for a slot',
      '',
      'HOST  STATE        SLOTS  FREE  RUNNING  COMMANDS/S  FREE MEMORY  MEMORY WAITS  DISK WAITS  TAKES NOTHING NEW BECAUSE',
      'h1    up              40    12        7        41.3       3.0 GB         1.5 %           -',
      'h2    up              40    12        7        41.3       3.0 GB         1.5 %           -  Its memory is \\u001b[31mshort.',
      'h3    unreachable      -     -        -           -            -             -           -',
      '',
      'TENANT   HOLDS  WAITS',
      'ci           4     12',
      'default     52      0',
      '',
      'WAIT  BECAUSE',
      '  12  All slots are taken.',
    ]);
    expect(drawLoad(LOAD, { height: 9, width: 200 }).filter(({ tone }) => tone === 'bad')).toEqual([]);
    expect(drawLoad(LOAD, { height: 90, width: 200 }).filter(({ tone }) => tone === 'bad')).toHaveLength(2);
  });

  test('names what keeps a host closed before that it opens other sessions', () => {
    const gate = { ...GATE, reason: '9 sessions of this host wait.' };
    const host: HostInfo = { ...HOST, cordoned: true, problems: ['An operator has cordoned it.'], gate };
    const row = drawLoad({ ...LOAD, hosts: [host] }, { height: 100, width: 200 })[4]?.text;
    expect(row).toMatch(/^h1 +up, cordoned .* An operator has cordoned it\.$/);
  });

  test('fits a narrow terminal: leaves out columns, then cuts rows', () => {
    expect(texts(60)[3]).toBe('HOST  STATE        FREE  TAKES NOTHING NEW BECAUSE');
    for (const width of [1, 7, 20, 40, 60, 80, 120]) {
      expect(Math.max(...texts(width).map(({ length }) => length))).toBeLessThanOrEqual(width);
    }
  });

  test('fits a low terminal, and says how much is missing', () => {
    expect(texts(60, 12).slice(2)).toEqual([
      '',
      'HOST  STATE        FREE  TAKES NOTHING NEW BECAUSE',
      'h1    up             12',
      '… 2 more hosts',
      '',
      'TENANT   HOLDS  WAITS',
      '… 2 more tenants',
      '',
      'WAIT  BECAUSE',
      '  12  All slots are taken.',
    ]);
    expect(texts(60, 1)).toHaveLength(1);
  });

  test.each([
    [[3, 2, 1], 6, [3, 2, 1]],
    [[9, 2, 1], 6, [3, 2, 1]],
    [[9, 9, 1], 7, [3, 3, 1]],
    [[9, 9], -4, [0, 0]],
  ])('shares rows between sections of %j: of %i rows %j', (lengths, rows, shares) => {
    expect(shareRows(lengths, rows)).toEqual(shares);
  });
});
