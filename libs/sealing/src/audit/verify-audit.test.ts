import type { AuditEvent } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { createSealKey } from '../seal.ts';
import { auditKeys, CHAIN_START, toAuditLine } from './audit-line.ts';
import { AuditCheck, isTampering, verifyAudit } from './verify-audit.ts';

const CHAIN = { namespace: 'n', host: 'h', tenant: 't' };
const sealKey = createSealKey();
const keys = auditKeys([sealKey], CHAIN);

const note = (n: number): AuditEvent => ({ type: 'lost', count: n });
const event = (entry: string): AuditEvent => ({
  ...{ type: 'start', session: 's', generation: 'g', entry },
  ...{ fence: 1, epoch: 1 },
});

function write(events: readonly AuditEvent[], from = CHAIN_START, key = keys[0] as (typeof keys)[0]) {
  let head = from;
  const lines: string[] = [];
  const heads = events.map((one) => {
    const next = toAuditLine(one, head, new Date(0).toISOString(), key);
    lines.push(next.line);
    head = next.head;
    return head;
  });
  return { lines, heads, head };
}

const FIVE = write(['a', 'b', 'c', 'd', 'e'].map(event));

function check(lines: readonly string[], heads = [FIVE.head], of = keys) {
  return verifyAudit([{ name: 'f', text: lines.join('') }], of, heads).findings.map(
    ({ type, where, message }) => `${type} ${where} ${message}`,
  );
}

describe('verifying an audit', () => {
  test('finds nothing in an unchanged chain', () => {
    const seen: number[] = [];
    const text = FIVE.lines.join('');
    expect(verifyAudit([{ name: 'f', text }], keys, FIVE.heads, ({ n }) => seen.push(n))).toEqual({
      records: 5,
      head: FIVE.head,
      findings: [],
    });
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });

  test.each<[string, (lines: string[]) => string[], string[]]>([
    [
      'altered',
      ([a, b, ...rest]) => [a ?? '', (b ?? '').replace('"entry":"b"', '"entry":"x"'), ...rest],
      ['altered f:2 record 2 was altered'],
    ],
    ['removed', ([a, _, ...rest]) => [a ?? '', ...rest], ['missing f:2 record 2 is missing before it']],
    ['removed at the beginning', (lines) => lines.slice(2), ['missing f:1 records 1 to 2 are missing']],
    ['cut off', (lines) => lines.slice(0, 3), ['cut-off f:3 records 4 to 5 are cut off: a head of record 5 was kept']],
    ['all cut off', () => [], ['cut-off  records 1 to 5 are cut off: a head of record 5 was kept']],
    [
      'repeated',
      ([a, b, ...rest]) => [a ?? '', b ?? '', b ?? '', ...rest],
      ['altered f:3 record 2 is in the wrong place, after record 2'],
    ],
    [
      'exchanged',
      ([a, b, c, ...rest]) => [a ?? '', c ?? '', b ?? '', ...rest],
      [
        'missing f:2 record 2 is missing before it',
        'altered f:3 record 2 is in the wrong place, after record 3',
        'missing f:4 record 3 is missing before it',
      ],
    ],
    [
      'made unreadable',
      ([a, ...rest]) => ['no record\n', a ?? '', ...rest],
      ['altered f:1 this line is no record any more'],
    ],
  ])('finds a record that was %s', (_, change, findings) => {
    expect(check(change([...FIVE.lines]))).toEqual(findings);
  });

  test('finds a record of another chain, host or key', () => {
    const other = auditKeys([sealKey], { ...CHAIN, host: 'other' })[0];
    const foreign = write([event('x')], FIVE.head, other).lines;
    expect(check([...FIVE.lines, ...foreign])).toEqual(['altered f:6 record 6 was altered']);
    const unknown = auditKeys([createSealKey()], CHAIN);
    expect(check(FIVE.lines.slice(0, 1), [], unknown)).toEqual([
      `unknown-key f:1 record 1 was made with the key ${keys[0]?.id}, which is not given`,
    ]);
  });

  test('finds by a kept head that records were removed and written again with the key', () => {
    const anew = write([event('x'), event('y')], FIVE.heads[2]).lines;
    expect(check([...FIVE.lines.slice(0, 3), ...anew])).toEqual([
      'altered f:5 record 5 is not the one whose head was kept',
    ]);
  });

  test('finds that a restored machine continued an older state of the chain', () => {
    const [first, ...rest] = FIVE.lines;
    const branch = write(['x', 'y'].map(event), FIVE.heads[0]).lines;
    expect(check([first ?? '', branch[0] ?? '', ...rest.slice(1)])).toEqual([
      'altered f:3 record 2 is not the one that record 3 was written after',
    ]);
  });

  test('accepts a chain that a newer key continues', () => {
    const next = createSealKey();
    const [newKey] = auditKeys([next, sealKey], CHAIN);
    const rotated = write([event('x')], FIVE.head, newKey).lines;
    expect(check([...FIVE.lines, ...rotated], [FIVE.head], auditKeys([next, sealKey], CHAIN))).toEqual([]);
  });

  test('does not report a line that a crash left incomplete as tampering', () => {
    const half = FIVE.lines[0]?.slice(0, 40) ?? '';
    const torn = 'torn f:6 a crash or a full disk left this line incomplete';
    const after = write([{ type: 'interrupted' }, event('x')], FIVE.head).lines;
    expect(check([...FIVE.lines, half])).toEqual([torn]);
    expect(check([...FIVE.lines, `${half}\n`, ...after])).toEqual([torn]);
    expect(check([...FIVE.lines, `${half}\n`, ...write([event('x')], FIVE.head).lines])).toEqual([
      'altered f:6 this line is no record any more',
    ]);
    const [finding] = verifyAudit([{ name: 'f', text: half }], keys, []).findings;
    expect(finding && isTampering(finding)).toBe(false);
  });

  test('accepts records that expired, and finds records that were lost', () => {
    const pruned = write([{ type: 'pruned', through: 3 }, note(7)], FIVE.head).lines;
    expect(check([...FIVE.lines.slice(3), ...pruned])).toEqual([
      'lost f:4 7 records of starts and ends could not be written',
    ]);
  });

  test('reports records that Redis had lost, and accepts that they were removed by hosts', () => {
    const rewound = write([{ type: 'rewound', found: 3, through: 5 }, { type: 'closed' }], FIVE.head);
    const read = (removedThrough: number, lines: readonly string[]) => {
      const chain = new AuditCheck(keys, [FIVE.head]);
      for (const [index, line] of lines.entries()) chain.read(line.trimEnd(), `f:${index + 1}`);
      chain.acceptRemoved(removedThrough);
      const { findings } = chain.end();
      return [chain.isClosed, ...findings.map(({ type, where, message }) => `${type} ${where} ${message}`)];
    };
    expect(read(0, [...FIVE.lines.slice(0, 3), ...rewound.lines])).toEqual([
      true,
      'missing f:4 records 4 to 5 are missing before it',
      'cut-off f:4 Redis had lost records 4 to 5',
    ]);
    expect(read(3, FIVE.lines.slice(3))).toEqual([false]);
    expect(read(5, [])).toEqual([false]);
    expect(read(3, [])).toEqual([false, 'cut-off  records 4 to 5 are cut off: a head of record 5 was kept']);
  });

  test('reports a loss of records that the host noticed at its start', () => {
    const cut = write([{ type: 'cut', anchored: 9, found: 5 }], FIVE.head).lines;
    expect(check([...FIVE.lines, ...cut])).toEqual(['cut-off f:6 records 6 to 9 are cut off before this host started']);
  });
});
