import { expect, test } from 'vitest';
import { isOn } from './is-on.ts';

test('a switch is off when its variable is unset, empty, 0, false, no or off, and else on', () => {
  const off = [undefined, '', ' ', '0', 'false', 'FALSE', 'no', 'off', 'Off'];
  expect(off.map(isOn)).toEqual(off.map(() => false));
  const on = ['1', 'true', 'yes', 'on', '2'];
  expect(on.map(isOn)).toEqual(on.map(() => true));
});
