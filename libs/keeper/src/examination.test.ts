import { fuzzText } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { decodeExamined, encodeExamine, MOST_PROBES } from './examination.ts';
import { MalformedFrame } from './frames.ts';

const lines = [
  'uid_map 0 65536 1000,1000 70000 64536',
  'cap_eff 0000000000000000',
  'cap_bnd 00000000a80425fb',
  'no_new_privs 1',
  'seccomp 2',
  'cgroup 2',
  'memory_max 536870912',
  'pids_max max',
  'oom_group 1',
  'exec_workspace 0',
  'probe 10.96.0.1:443 timeout',
  'probe [fd00::1]:7443 connected',
];
const textOf = (of: readonly string[]) => of.map((line) => `${line}\n`).join('');

describe('an examination', () => {
  test('has the values that the keeper read, and the result of each attempt', () => {
    expect(decodeExamined(Buffer.from(textOf(lines)))).toEqual({
      uidMap: [
        { inside: 0, outside: 65_536, count: 1_000 },
        { inside: 1_000, outside: 70_000, count: 64_536 },
      ],
      effectiveCapabilities: 0n,
      boundingCapabilities: 0xa80425fbn,
      noNewPrivs: true,
      seccomp: 2,
      cgroup: 2,
      memoryMaxBytes: 536_870_912,
      pidsMax: Number.POSITIVE_INFINITY,
      oomGroup: true,
      execWorkspace: false,
      probes: new Map([
        ['10.96.0.1:443', 'timeout'],
        ['[fd00::1]:7443', 'connected'],
      ]),
    });
  });

  test('lacks what the keeper could not read', () => {
    expect(decodeExamined(new Uint8Array(0))).toEqual({ probes: new Map() });
  });

  test.each([
    ['an unknown name', 'colour blue'],
    ['no value', 'seccomp'],
    ['a negative number', 'memory_max -1'],
    ['a number with a unit', 'memory_max 12k'],
    ['capabilities that are no bits', 'cap_eff none'],
    ['a third version of control groups', 'cgroup 3'],
    ['a flag of 2', 'no_new_privs 2'],
    ['a cut map of user ids', 'uid_map 0 1000'],
    ['an unknown result', 'probe 10.0.0.1:1 perhaps'],
    ['a result of two words', 'probe 10.0.0.1:1 timeout timeout'],
    ['a value twice', 'seccomp 2\nseccomp 0'],
    ['an address twice', 'probe 10.0.0.1:1 timeout\nprobe 10.0.0.1:1 connected'],
    ['too many attempts', Array.from({ length: MOST_PROBES + 1 }, (_, i) => `probe 10.0.0.1:${i} timeout`).join('\n')],
  ])('is malformed with %s', (_, text) => {
    expect(() => decodeExamined(Buffer.from(`${text}\n`))).toThrow(MalformedFrame);
  });

  test('is decoded from any text, or refused as malformed', () => {
    fuzzText([textOf(lines), ...lines], (text) => {
      try {
        const { memoryMaxBytes = 0, pidsMax = 0, seccomp = 0, probes } = decodeExamined(Buffer.from(text));
        for (const number of [memoryMaxBytes, pidsMax, seccomp]) expect(number).toBeGreaterThanOrEqual(0);
        expect(probes.size).toBeLessThanOrEqual(MOST_PROBES);
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedFrame);
      }
    });
  });

  test('is asked for with one line for each address', () => {
    expect(encodeExamine(['10.96.0.1:443', '[fd00::1]:7443']).toString()).toBe(
      'probe 10.96.0.1:443\nprobe [fd00::1]:7443\n',
    );
    expect(() => encodeExamine(Array.from({ length: 17 }, () => '10.0.0.1:1'))).toThrow(RangeError);
  });
});
