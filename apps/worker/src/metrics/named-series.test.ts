import { namesOfGreatest, OTHERS } from '@shellfleet/placement';
import { describe, expect, test } from 'vitest';
import { MOST_NAMED, sumByNamed } from './named-series.ts';

const tenants = Array.from({ length: 1_000 }, (_, index) => `t${String(index).padStart(3, '0')}`);

describe('the named tenants of a metric', () => {
  test('are those with the greatest values, and the first by name among equals', () => {
    const values = new Map(tenants.map((tenant, index) => [tenant, index % 100]));
    const named = [...namesOfGreatest(values, 20)];
    expect(named).toHaveLength(20);
    expect(named.slice(0, 3)).toEqual(['t099', 't199', 't299']);
    expect(named.slice(10, 12)).toEqual(['t098', 't198']);
  });

  test('are those with the most sessions of all classes, without changing the sum', () => {
    const counts = tenants.flatMap((tenant, index) => [
      { class: 'docker', tenant, count: index === 7 ? 50 : 1 },
      { class: 'host', tenant, count: index === 8 ? 60 : 1 },
    ]);
    const sums = sumByNamed(counts);
    expect(sums).toHaveLength(2 * (MOST_NAMED.tenants + 1));
    expect(sums).toContainEqual({ class: 'docker', tenant: 't007', count: 50 });
    expect(sums).toContainEqual({ class: 'docker', tenant: OTHERS, count: 1_000 - MOST_NAMED.tenants });
    expect(sums.reduce((sum, { count }) => sum + count, 0)).toBe(2_000 + 49 + 59);
  });

  test('have at most ten classes, whatever clients call theirs', () => {
    const counts = tenants.map((tenant, index) => ({ class: `docker,id=${index}`, tenant, count: 1 }));
    const sums = sumByNamed([...counts, { class: 'host', tenant: 't000', count: 5 }]);
    expect(new Set(sums.map((one) => one.class)).size).toBe(MOST_NAMED.classes + 1);
    expect(sums).toContainEqual({ class: 'host', tenant: 't000', count: 5 });
    expect(sums.reduce((sum, { count }) => sum + count, 0)).toBe(1_005);
  });

  test('are all of them while they are few', () => {
    expect(sumByNamed([{ class: 'docker', tenant: 'a', count: 1 }])).toEqual([
      { class: 'docker', tenant: 'a', count: 1 },
    ]);
  });
});
