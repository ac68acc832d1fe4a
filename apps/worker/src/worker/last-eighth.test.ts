import { describe, expect, test } from 'vitest';
import { takenAtOnce, tenantsWithTheirPart } from './last-eighth.ts';

describe('the last eighth of the places of a host', () => {
  test.each([
    ['is open to all while more is free', { a: 13 }, 16, []],
    ['is closed to a tenant that holds an eighth', { a: 14 }, 16, ['a']],
    ['is open to a tenant that holds less', { a: 13, b: 1 }, 16, ['a']],
    ['is open to nobody once every tenant holds an eighth', { a: 12, b: 2 }, 16, ['a', 'b']],
    ['is one of eight places', { a: 7 }, 8, ['a']],
    ['is none of seven places', { a: 6 }, 7, []],
    ['is rounded down', { a: 13 }, 15, []],
    ['follows the memory, of which there may be less than slots', { a: 20 }, 22, ['a']],
  ])('%s', (_what, held, places, tenants) => {
    expect(tenantsWithTheirPart(new Map(Object.entries(held)), places)).toEqual(tenants);
  });

  test.each([7, 8, 15, 16, 22, 400])('is judged again when a batch has reached it, with %i places', (places) => {
    const most = takenAtOnce(new Map([['a', 3]]), places);
    expect(tenantsWithTheirPart(new Map([['a', 3 + most - 1]]), places)).toEqual([]);
    const isFull = 3 + most === places;
    expect(tenantsWithTheirPart(new Map([['a', 3 + most]]), places)).toEqual(['a']);
    expect(takenAtOnce(new Map([['a', 3 + most]]), places)).toBe(1);
    expect(isFull).toBe(places < 8);
  });
});
