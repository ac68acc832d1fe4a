import { expect, test } from 'vitest';
import { AnchorScan } from './anchor-scan.ts';
import { FindingList } from './finding-list.ts';
import type { Rule } from './source.ts';

const rule: Rule = { type: 'x', strategy: 'redact', rank: 1 };

function foundIn(text: string, scan: AnchorScan): string[] {
  const bytes = Buffer.from(`\n${text}`);
  const findings = new FindingList();
  scan.scan({ bytes, from: 1, to: bytes.length, end: bytes.length, complete: true, leftFrom: 1 }, findings);
  return findings.spans().map(({ from, end }) => bytes.toString('latin1', from, end));
}

test('an anchor that folds is found with any of its letters in either case, and with no other byte for one', () => {
  const scan = new AnchorScan([{ rule, bytes: Buffer.from('azm_AZM@[`{'), fold: true }]);
  expect(foundIn('azm_azm@[`{ AZM_AZM@[`{ aZm_Azm@[`{', scan)).toHaveLength(3);
  for (const other of ['azm_azm`[`{', 'azm_azm@{`{', 'azm_azm@[@{', 'azm_azm@[`[', 'azm\u007fazm@[`{'])
    expect(foundIn(other, scan), other).toEqual([]);
});

test('an anchor without fold is found as it is written', () => {
  const scan = new AnchorScan([{ rule, bytes: Buffer.from('azm_') }]);
  expect(foundIn('azm_ Azm_ azM_ azm_', scan)).toEqual(['azm_', 'azm_']);
});
