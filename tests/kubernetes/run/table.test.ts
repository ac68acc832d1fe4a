import { describe, expect, test } from 'vitest';
import { drawTable, toRows } from './table.ts';

describe('the table of a run on a cluster', () => {
  test('has a row for each test, and one for a file without tests', () => {
    const rows = toRows({
      testResults: [
        {
          ...{ status: 'failed', name: 'a.test.ts' },
          assertionResults: [
            { status: 'failed', fullName: 'a Pod ends', failureMessages: ['it did not\n  at …'] },
            { status: 'passed', fullName: 'a Pod begins' },
            { status: 'skipped', fullName: 'a Pod is apart' },
          ],
        },
        { status: 'failed', name: 'b.test.ts', message: 'no such module', assertionResults: [] },
      ],
    });
    expect(drawTable(rows).split('\n')).toEqual([
      'passed             a Pod begins',
      'failed             a Pod ends: it did not',
      'failed             b.test.ts: no such module',
      'not possible here  a Pod is apart',
      '1 passed, 2 failed, 1 not possible here',
    ]);
  });
});
