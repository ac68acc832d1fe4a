import type { Entry } from '@shellfleet/mailbox';
import { describe, expect, test } from 'vitest';
import { AdmittedEntry } from './admitted-entry.ts';

const ENTRY = { id: 'e', payload: 'p', first: 'f' };

describe('the admitted entry', () => {
  test('is recognized by payload, attempt and rules until it is cleared', () => {
    const admitted = new AdmittedEntry();
    expect(admitted.is(ENTRY, 'd')).toBe(false);
    admitted.set(ENTRY, 'd');
    expect(admitted.is({ ...ENTRY }, 'd')).toBe(true);
    admitted.clear();
    expect(admitted.is(ENTRY, 'd')).toBe(false);
  });

  test.each([
    ['id', { id: 'x' }, 'd'],
    ['payload', { payload: 'x' }, 'd'],
    ['first attempt', { first: 'x' }, 'd'],
    ['attempt', { first: undefined }, 'd'],
    ['digest of the rules', {}, 'x'],
  ])('is not an entry with another %s', (_what, other, digest) => {
    const admitted = new AdmittedEntry();
    admitted.set(ENTRY, 'd');
    expect(admitted.is({ ...ENTRY, ...other } as Entry, digest)).toBe(false);
  });
});
