import { expect, test } from 'vitest';
import { isDebianFamily } from './debian-packages.ts';

test.each([
  ['ID=debian\nVERSION_ID="12"', true],
  ['ID=ubuntu\nID_LIKE=debian', true],
  ['ID=pop\nID_LIKE="ubuntu debian"', true],
  ['ID=fedora', false],
  ['NAME="not debian"\nID=alpine', false],
  ['', false],
])('knows a Debian by its os-release: %j', (text, expected) => {
  expect(isDebianFamily(text)).toBe(expected);
});
