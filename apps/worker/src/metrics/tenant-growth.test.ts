import { OTHERS } from '@shellfleet/placement';
import { describe, expect, test } from 'vitest';
import { TenantGrowth } from './tenant-growth.ts';

const totals = (of: Record<string, number>) => new Map(Object.entries(of));

describe('the growth of the totals of tenants', () => {
  test('counts from the first totals on, and sums tenants that are not named', () => {
    const growth = new TenantGrowth(totals({ a: 100 }));
    expect(growth.since(totals({ a: 103, b: 2, c: 5 }), new Set(['a']))).toEqual(totals({ a: 3, [OTHERS]: 7 }));
    expect(growth.since(totals({ a: 103, b: 3, c: 5 }), new Set(['a']))).toEqual(totals({ a: 0, [OTHERS]: 1 }));
  });

  test('never falls or leaps when a tenant gets or loses its own series', () => {
    const growth = new TenantGrowth(totals({ a: 1_000, b: 900 }));
    expect(growth.since(totals({ a: 1_001, b: 901 }), new Set(['a']))).toEqual(totals({ a: 1, [OTHERS]: 1 }));
    expect(growth.since(totals({ a: 1_002, b: 2_000 }), new Set(['b']))).toEqual(totals({ b: 1_099, [OTHERS]: 1 }));
  });
});
