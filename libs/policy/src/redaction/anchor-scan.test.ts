import { describe, expect, test } from 'vitest';
import { AnchorScan } from './anchor-scan.ts';
import { FindingList } from './finding-list.ts';
import type { Rule } from './source.ts';
import { PairTable, TOKEN_ANCHOR_BITS } from './spots.ts';
import { PendingWindow } from './window.ts';

const rule: Rule = { type: 'x', strategy: 'redact', rank: 1 };

function foundIn(text: string, scan: AnchorScan): string[] {
  const bytes = Buffer.alloc(2 + text.length + (text.length & 1), `\n${text}`);
  const end = 1 + text.length;
  const [window, pairs, findings] = [new PendingWindow(), new PairTable(), new FindingList()];
  scan.mark(pairs);
  window.setBytes(bytes);
  window.look(1, end, end, true, 1);
  window.collectSpots(pairs);
  scan.scan(window, findings);
  return findings.spans().map(({ from, end }) => bytes.toString('latin1', from, end));
}

describe('the scan for anchors', () => {
  test('finds an anchor with `fold` in either case, but not with another byte', () => {
    const scan = new AnchorScan([{ rule, bytes: Buffer.from('azm_AZM@[`{'), fold: true }], TOKEN_ANCHOR_BITS);
    expect(foundIn('azm_azm@[`{ AZM_AZM@[`{ aZm_Azm@[`{', scan)).toHaveLength(3);
    for (const other of ['azm_azm`[`{', 'azm_azm@{`{', 'azm_azm@[@{', 'azm_azm@[`[', 'azm\u007fazm@[`{'])
      expect(foundIn(other, scan), other).toEqual([]);
  });

  test('finds an anchor without `fold` only in its own upper and lower case', () => {
    const scan = new AnchorScan([{ rule, bytes: Buffer.from('azm_') }], TOKEN_ANCHOR_BITS);
    expect(foundIn('azm_ Azm_ azM_ azm_', scan)).toEqual(['azm_', 'azm_']);
  });

  test('keeps the end of a text open while any anchor may begin there', () => {
    const notAfter = new Uint8Array(256);
    notAfter['x'.charCodeAt(0)] = 1;
    const anchors = [
      { rule, bytes: Buffer.from('tok_a'), notAfter },
      { rule, bytes: Buffer.from('tok_b') },
    ];
    const openAt = (text: string, of: typeof anchors) => {
      const bytes = Buffer.alloc(2 + text.length + (text.length & 1), `\n${text}`);
      const [window, findings] = [new PendingWindow(), new FindingList()];
      window.setBytes(bytes);
      window.look(1, 1 + text.length, 1 + text.length, false, 1);
      const [scan, pairs] = [new AnchorScan(of, TOKEN_ANCHOR_BITS), new PairTable()];
      scan.mark(pairs);
      window.collectSpots(pairs);
      scan.scan(window, findings);
      return findings.openAt - 1;
    };
    for (const of of [anchors, anchors.toReversed()])
      expect([openAt('text xto', of), openAt('text xt', of)]).toEqual([6, 6]);
    expect(openAt('text xto', anchors.slice(0, 1))).toBe(Number.POSITIVE_INFINITY);
  });
});
