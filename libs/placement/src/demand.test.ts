import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseDemand, placeAmongTenants, type TenantDemand } from './demand.ts';

const hashOf = (tenant: string) => createHash('sha1').update(tenant).digest('hex');
const demandOf = (tenant: string, held: number, waiting: number, own: Partial<TenantDemand> = {}): TenantDemand => ({
  ...{ tenant: hashOf(tenant), held, weight: 1, waiting: { docker: waiting } },
  ...own,
});
const CLASSES = new Set(['docker']);

/** Returns the position of session `ahead` + 1 of the tenant `me`. */
const positionOf = (ahead: number, ...demand: TenantDemand[]) =>
  placeAmongTenants({ tenant: 'me', ahead, waiting: 10 }, demand, CLASSES).position;

describe('the place of a session among those of all tenants', () => {
  test.each([
    ['is that in its own line if no other tenant waits', 3, [demandOf('me', 5, 10)], 4],
    ['is before all of a tenant that holds more', 0, [demandOf('flood', 8, 10_000), demandOf('me', 0, 10)], 1],
    ['is behind those that another one gets first', 0, [demandOf('me', 8, 10), demandOf('new', 0, 100)], 9],
    ['is behind no more than wait', 0, [demandOf('me', 8, 10), demandOf('new', 0, 2)], 3],
    ['alternates with an equal tenant that is listed before', 2, [demandOf('a', 1, 9), demandOf('me', 1, 10)], 6],
    ['alternates with an equal tenant that is listed behind', 2, [demandOf('me', 1, 10), demandOf('a', 1, 9)], 5],
    ['counts two of a tenant with twice the weight', 2, [demandOf('me', 0, 10), demandOf('a', 0, 9, { weight: 2 })], 7],
    ['counts none of a tenant at its quota', 5, [demandOf('a', 2, 9, { room: 0 }), demandOf('me', 2, 10)], 6],
    ['counts only the classes that the same hosts take', 5, [demandOf('a', 0, 0, { waiting: { host: 9 } })], 6],
    ['is the last among equals if its tenant is not listed yet', 0, [demandOf('a', 0, 9), demandOf('b', 1, 9)], 2],
  ])('%s', (_what, ahead, demand, position) => {
    expect(positionOf(ahead, ...demand)).toBe(position);
  });

  test('has how many sessions of its tenant must end before its quota has room', () => {
    const demand = [demandOf('me', 2, 10, { room: 1 }), demandOf('a', 0, 3)];
    const places = [0, 1, 4].map((ahead) => placeAmongTenants({ tenant: 'me', ahead, waiting: 10 }, demand, CLASSES));
    expect(places).toEqual([
      { position: 3, length: 13, overQuota: 0, quota: 3 },
      { position: 5, length: 13, overQuota: 1, quota: 3 },
      { position: 8, length: 13, overQuota: 4, quota: 3 },
    ]);
  });

  test.each([null, '', '{}', '[{"held":1}]'])('is known without the others if Redis has %j of them', (text) => {
    expect(parseDemand(text)).toEqual([]);
  });
});
