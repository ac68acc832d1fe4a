import { describe, expect, test } from 'vitest';
import { isOn } from './is-on.ts';

describe('isOn', () => {
  test('is false for unset, empty, 0, false, no and off, and true for other values', () => {
    const off = [undefined, '', ' ', '0', 'false', 'FALSE', 'no', 'off', 'Off'];
    expect(off.map(isOn)).toEqual(off.map(() => false));
    const on = ['1', 'true', 'yes', 'on', '2'];
    expect(on.map(isOn)).toEqual(on.map(() => true));
  });
});
