import type { RedactionRule } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { feed } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

const hashKey = Buffer.alloc(32, 7);
const BYTES = 100_000;
const MOST_MS = 50;
/** Greatest ratio of the times for twice the input and for the input. Quadratic work would have a ratio of four. */
const MOST_RATIO = 2.7;

/** Time of `calibrate` on an idle core of the machine behind the figures in docs/output.md. */
const IDLE_CALIBRATION_MS = 6;

const MOST_ROUNDS = 30;

interface Times {
  /** Milliseconds for 100 KB on an idle core. Other work on the core slows calibration and test alike. */
  idleMs: number;
  /** Time for twice the input, divided by the time for the input. */
  ratio: number;
}

/**
 * Returns the shortest processor times of up to 30 rounds, or of fewer if the times are `good`. Other work can only
 * lengthen a time.
 */
function measure(rules: RedactionRule[], make: (bytes: number) => string, good: (times: Times) => boolean): Times {
  const redaction = compileRedaction({ rules, hashKey });
  const [input, doubled] = [Buffer.from(make(BYTES)), Buffer.from(make(2 * BYTES))];
  const least = { calibration: Infinity, input: Infinity, doubled: Infinity };
  const take = (name: keyof typeof least, work: () => void): void => {
    least[name] = Math.min(least[name], processorMs(work));
  };
  const times = (): Times => ({
    idleMs: least.input / Math.max(1, least.calibration / IDLE_CALIBRATION_MS),
    // Times below 2 ms consist mostly of the steps of the clock.
    ratio: least.doubled / Math.max(2, least.input),
  });
  for (let round = 0; round < MOST_ROUNDS && (round < 3 || !good(times())); round += 1) {
    take('calibration', calibrate);
    take('input', () => void feed(redaction.redactor(), [input]));
    take('doubled', () => void feed(redaction.redactor(), [doubled]));
  }
  return times();
}

function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const TABLE = Uint32Array.from({ length: 4096 }, (_, index) => (index * 2_654_435_761) >>> 20);

function calibrate(): void {
  let at = 1;
  for (let round = 0; round < 3_000_000; round += 1) at = TABLE[(at + round) & 4095]!;
  if (at === -1) throw new Error('the loop has to be run');
}

describe('redaction of hostile text', () => {
  const repeated = (text: string) => (bytes: number) => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);
  const email: RedactionRule[] = [{ type: 'email', strategy: 'redact' }];
  const custom = (pattern: string): RedactionRule[] => [{ type: 'x', strategy: 'redact', pattern }];
  test.each<[string, RedactionRule[], (bytes: number) => string]>([
    ['a long local part', email, repeated('a')],
    ['one at after the other', email, repeated('@')],
    ['many ats', email, repeated('a@')],
    ['dots', email, repeated('a.')],
    ['domains without end', email, repeated('a@b.c-')],
    ['domains of 250 characters', email, repeated(`a@${'b'.repeat(250)}`)],
    ['many addresses', email, repeated('a@b.co ')],
    ['addresses side by side', email, repeated('a@b.co,')],
    [
      'addresses side by side, and no digit for a card',
      [...email, { type: 'credit_card', strategy: 'redact' as const }],
      repeated('a@b.co,'),
    ],
    ['beginnings of keys', [], repeated('-----BEGIN PRIVATE KEY-----')],
    ['beginnings of tokens', [], repeated('ops_eyJ')],
    ['(a+)+$', custom('(a+)+$'), (bytes) => `${'a'.repeat(bytes - 1)}b`],
    ['(a|aa)+!', custom('(a|aa)+!'), repeated('a')],
    ['.*x.*y', custom('.*x.*y'), repeated('x')],
    ['[^b]*b', custom('[^b]*b'), repeated('a')],
    ['many matches', custom('a+b'), repeated('aaaaaaaaaaab')],
  ])('takes at most 50 ms for 100 KB, and linear time: %s', (_name, rules, make) => {
    const isGood = ({ idleMs, ratio }: Times) => idleMs <= MOST_MS && ratio <= MOST_RATIO;
    const { idleMs, ratio } = measure(rules, make, isGood);
    expect(idleMs).toBeLessThanOrEqual(MOST_MS);
    expect(ratio).toBeLessThanOrEqual(MOST_RATIO);
  });
});
